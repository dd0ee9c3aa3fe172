/**
 * The storage thread: compresses, checksums and writes what commits bring, and rewrites rows and seals usage in between, so that the
 * serving thread needn't. A commit waits for a rewrite no longer than a slice of it.
 */

import { rmSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { encodeDirectory } from '../../engine/rows/directory.js';
import { rewriteRuns, USUAL_SIZES } from '../../engine/rows/rewrite.js';
import { SegmentError } from '../../engine/segments.js';
import { sealPart } from '../../engine/usage/seal.js';
import { partFile } from '../../engine/usage/sealed-part.js';
import { monotonicUs } from '../system-clock.js';
import { giveWayToServing } from '../thread-priority.js';
import { deflatedValue } from './checked-value.js';
import { sealEnvelope } from './envelope.js';
import { FileAppender } from './file-appender.js';
import { REWRITE_SLICE_MS, STORAGE_THREAD_NICENESS } from './limits.js';
import { RewriteFiles } from './rewrite-files.js';
import type { Done, Rewritten, Sealed, StorageAnswer, StorageQuestion, Written } from './storage-protocol.js';

giveWayToServing(STORAGE_THREAD_NICENESS);

const appender = new FileAppender();

parentPort!.on('message', ({ id, ...question }: StorageQuestion & { readonly id: number }) => {
  try {
    switch (question.do) {
      case 'write': {
        const written = write(question);
        return answer({ id, done: written }, [written.sealed]);
      }
      case 'sync':
        appender.sync();
        return answer({ id, done: null });
      case 'cut-back':
        appender.cutBack(question.ends);
        return answer({ id, done: null });
      case 'remove':
        for (const path of question.paths) rmSync(path, { force: true });
        return answer({ id, done: null });
      case 'rewrite':
        return beginRewrite(id, question);
      case 'seal':
        return beginSeal(id, question);
    }
  } catch (error) {
    answer({ id, ...failure(error) });
  }
});

function answer(message: StorageAnswer, transferred: ArrayBuffer[] = []): void {
  parentPort!.postMessage(message, transferred);
}

function failure(error: unknown) {
  const failed = error instanceof Error ? error.message : String(error);
  return { failed, isDamage: error instanceof SegmentError };
}

function write({ arena, items }: StorageQuestion & { readonly do: 'write' }): Written {
  const values: Uint8Array[] = [];
  const lengths: number[] = [];
  let byteCount = 0;
  let start = 0;
  for (const { name, end, path } of items) {
    const raw = new Uint8Array(arena, start, end - start);
    start = end;
    const value = path === null ? sealEnvelope(name, raw) : deflatedValue(name, raw);
    lengths.push(value.length);
    if (path !== null) appender.append(path, value);
    else {
      values.push(value);
      byteCount += value.length;
    }
  }
  const sealed = new Uint8Array(byteCount);
  let at = 0;
  for (const value of values) {
    sealed.set(value, at);
    at += value.length;
  }
  return { sealed: sealed.buffer, lengths };
}

function beginRewrite(id: number, question: StorageQuestion & { readonly do: 'rewrite' }): void {
  const { plan, chunkBytes, namePrefix, folder, inputs } = question;
  const files = new RewriteFiles(namePrefix, folder, inputs);
  build(id, files, rewriteRuns(plan, files, { ...USUAL_SIZES, chunkBytes }), (directory): Rewritten => {
    return { frameEnds: files.finish(plan.output), directory: directory && encodeDirectory(directory) };
  });
}

function beginSeal(
  id: number,
  { plan, namePrefix, folder }: StorageQuestion & { readonly do: 'seal' },
): void {
  const files = new RewriteFiles(namePrefix, folder, []);
  build(id, files, sealPart(plan, files), (summary): Sealed => {
    return { frameEnds: files.finish(partFile(plan.name)), summary };
  });
}

/** Takes the steps in slices, and answers what `finish` makes of their result. */
function build<T>(
  id: number,
  files: RewriteFiles,
  steps: Generator<void, T>,
  finish: (result: T) => Done,
): void {
  const slice = (): void => {
    try {
      const step = advance(steps);
      if (step.done === true) answer({ id, done: finish(step.value) });
      else setImmediate(slice);
    } catch (error) {
      files.abandon();
      answer({ id, ...failure(error) });
    }
  };
  slice();
}

/** Goes on for a slice, or to the end. */
function advance<T>(steps: Generator<void, T>): IteratorResult<void, T> {
  const endUs = monotonicUs() + REWRITE_SLICE_MS * 1000;
  for (;;) {
    const step = steps.next();
    if (step.done === true || monotonicUs() >= endUs) return step;
  }
}
