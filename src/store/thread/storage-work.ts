/**
 * The work of the storage thread: compresses, checksums and writes what commits bring, and compacts rows and
 * seals usage in between, so that the serving thread does not have to. A commit waits for a compaction no
 * longer than a slice of it.
 */

import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { SORTED_BLOCK_BYTES } from '../../../engine/limits.js';
import { compactRuns } from '../../../engine/rows/compaction.js';
import { encodeDirectory } from '../../../engine/rows/directory.js';
import { SegmentError } from '../../../engine/segments.js';
import { sealPart } from '../../../engine/usage/sealed/seal.js';
import { partFile } from '../../../engine/usage/sealed/sealed-part.js';
import { monotonicUs } from '../../system-clock.js';
import { type CompactionDisk, CompactionFiles } from '../blocks/compaction-files.js';
import type { Disk } from '../disk/disk.js';
import { FileAppender } from '../disk/file-appender.js';
import type { FileSteps } from '../disk/file-steps.js';
import { Folders } from '../disk/folders.js';
import { Removals } from '../disk/removals.js';
import { errorText, SyncError } from '../disk/system-errors.js';
import { writeCheckpoint } from '../journal/checkpoint.js';
import { COMPACTION_SLICE_MS } from '../limits.js';
import { compressedValue } from '../values/checked-value.js';
import { wrapEnvelope } from '../values/envelope.js';
import type {
  Compacted,
  Done,
  FailureKind,
  LinkedFile,
  Removed,
  Sealed,
  StorageAnswer,
  StorageQuestion,
  Written,
} from './storage-protocol.js';

type Question = StorageQuestion & { readonly id: number };

type FileStep = ReturnType<FileSteps<Done>['next']>;

export interface StoragePorts {
  readonly disk: Disk;
  readonly answer: (message: StorageAnswer, transferred: ArrayBuffer[]) => void;
  /** Runs a task once waiting questions have been taken. */
  readonly later: (task: () => void) => void;
  readonly monotonicUs: () => number;
  /** See CompactionSizes. */
  readonly blockBytes: number;
}

/** Does the work in a worker thread, for the thread that started it. */
export function serveStorage(disk: Disk): void {
  const port = parentPort!;
  const work = new StorageWork({
    disk,
    answer: (message, transferred) => port.postMessage(message, transferred),
    later: setImmediate,
    monotonicUs,
    blockBytes: SORTED_BLOCK_BYTES,
  });
  port.on('message', (question: Question) => work.take(question));
}

export class StorageWork {
  readonly #ports: StoragePorts;
  readonly #folders: Folders;
  readonly #removals: Removals;
  readonly #appender: FileAppender;
  /** What came while files are synced or removed, in order. */
  readonly #waiting: Question[] = [];
  /** Of the questions that files are being synced or removed for. */
  #underWayCount = 0;

  constructor(ports: StoragePorts) {
    this.#ports = ports;
    this.#folders = new Folders(ports.disk);
    this.#removals = new Removals(ports.disk);
    this.#appender = new FileAppender(ports.disk, this.#folders, this.#removals);
  }

  /** Does what is asked, in order, and answers; a compaction goes on later. What fails is answered too. */
  take(question: Question): void {
    this.#waiting.push(question);
    this.#begin();
  }

  #begin(): void {
    while (this.#waiting.length > 0 && this.#mayBegin(this.#waiting[0])) this.#do(this.#waiting.shift()!);
  }

  /**
   * While files are synced or removed no other question is begun but an append to other files: a POST does not wait for
   * a commit's files of blocks, nor for a checkpoint that comes between, which has a file of its own.
   */
  #mayBegin(question: Question): boolean {
    if (this.#underWayCount === 0 || question.do === 'checkpoint') return true;
    return (
      question.do === 'append' && question.additions.every(({ path }) => !this.#appender.isBeingSynced(path))
    );
  }

  #do({ id, ...question }: Question): void {
    try {
      this.#removals.retry();
      switch (question.do) {
        case 'write': {
          const written = this.#write(question);
          this.#ports.answer({ id, done: written }, [written.sealed]);
          break;
        }
        case 'append':
          for (const { path, bytes } of question.additions) this.#appender.appendAndHold(path, bytes);
          this.#afterSync(this.#appender.sync(new Set(question.additions.map(({ path }) => path))), id);
          break;
        case 'checkpoint':
          this.#beginCheckpoint(id, question);
          break;
        case 'sync':
          this.#afterSync(this.#appender.sync(), id);
          break;
        case 'cut-back':
          this.#appender.cutBack(question.ends);
          this.#afterSync(this.#appender.syncContents(), id);
          break;
        case 'remove':
          for (const path of question.paths) this.#appender.release(path);
          this.#after(this.#removeAll(question.paths), id);
          break;
        case 'link':
          this.#link(question.folder, question.names);
          this.#answer({ id, done: null });
          break;
        case 'compact':
          this.#beginCompaction(id, question);
          break;
        case 'seal':
          this.#beginSeal(id, question);
          break;
      }
    } catch (error) {
      this.#answer({ id, ...failure(error) });
    }
  }

  #afterSync(synced: Promise<void>, id: number): void {
    this.#after(
      synced.then(() => null),
      id,
    );
  }

  /** See mayBegin for what is done meanwhile. */
  #after(work: Promise<Done>, id: number): void {
    this.#underWayCount += 1;
    void work
      .then(
        (done) => this.#answer({ id, done }),
        (error: unknown) => this.#answer({ id, ...failure(error) }),
      )
      .then(() => {
        this.#underWayCount -= 1;
        this.#begin();
      });
  }

  async #removeAll(paths: readonly string[]): Promise<Removed> {
    for (const path of paths) await this.#removals.removeLater(path);
    return { left: this.#removals.left() };
  }

  #answer(message: StorageAnswer): void {
    this.#ports.answer(message, []);
  }

  #write({ arena, items }: StorageQuestion & { readonly do: 'write' }): Written {
    const values: Uint8Array[] = [];
    const lengths: number[] = [];
    let byteCount = 0;
    let start = 0;
    for (const { name, end, path } of items) {
      const raw = new Uint8Array(arena, start, end - start);
      start = end;
      const value = path === null ? wrapEnvelope(name, raw) : compressedValue(name, raw);
      lengths.push(value.length);
      if (path !== null) this.#appender.append(path, value);
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

  #link(folder: string, names: readonly LinkedFile[]): void {
    const { disk } = this.#ports;
    disk.makeFolder(folder);
    try {
      for (const { path, name } of names) disk.link(path, join(folder, name));
    } catch (error) {
      for (const { name } of names) this.#removals.remove(join(folder, name));
      throw error;
    }
  }

  #beginCheckpoint(id: number, question: StorageQuestion & { readonly do: 'checkpoint' }): void {
    this.#inSlices(id, writeCheckpoint(this.#compactionDisk(), question));
  }

  #beginCompaction(id: number, question: StorageQuestion & { readonly do: 'compact' }): void {
    const { plan, chunkBytes, namePrefix, folder, inputs } = question;
    const { blockBytes } = this.#ports;
    const files = new CompactionFiles(this.#compactionDisk(), namePrefix, folder, inputs);
    const compact = function* (): FileSteps<Compacted> {
      const directory = yield* compactRuns(plan, files, { chunkBytes, blockBytes });
      const frameEnds = yield* files.finish(plan.output);
      return { frameEnds, directory: directory && encodeDirectory(directory) };
    };
    this.#inSlices(id, compact(), () => files.abandon());
  }

  #beginSeal(id: number, { plan, namePrefix, folder }: StorageQuestion & { readonly do: 'seal' }): void {
    const files = new CompactionFiles(this.#compactionDisk(), namePrefix, folder, []);
    const seal = function* (): FileSteps<Sealed> {
      const summary = yield* sealPart(plan, files);
      return { frameEnds: yield* files.finish(partFile(plan.name)), summary };
    };
    this.#inSlices(id, seal(), () => files.abandon());
  }

  #compactionDisk(): CompactionDisk {
    const { disk } = this.#ports;
    const sync = (descriptor: number): Promise<void> => disk.syncAll([descriptor]);
    return { disk, folders: this.#folders, removals: this.#removals, sync };
  }

  /** Takes the steps in slices, and answers their result; `abandon` removes what is begun when they fail. */
  #inSlices(id: number, steps: FileSteps<Done>, abandon: () => void = () => undefined): void {
    const { later } = this.#ports;
    const next = () => steps.next();
    const slice = (resume: () => FileStep): void => {
      try {
        const step = this.#advance(resume, next);
        if (step.done === true) this.#answer({ id, done: step.value });
        else if (step.value === undefined) later(() => slice(next));
        else
          step.value.then(
            () => later(() => slice(next)),
            (error: unknown) => later(() => slice(() => steps.throw(error))),
          );
      } catch (error) {
        abandon();
        this.#answer({ id, ...failure(error) });
      }
    };
    slice(next);
  }

  /** Goes on for a slice, up to something to wait for, or to the end. */
  #advance(resume: () => FileStep, next: () => FileStep): FileStep {
    const { monotonicUs } = this.#ports;
    const endUs = monotonicUs() + COMPACTION_SLICE_MS * 1000;
    for (let step = resume(); ; step = next())
      if (step.done === true || step.value !== undefined || monotonicUs() >= endUs) return step;
  }
}

function failure(error: unknown): { failed: string; kind: FailureKind } {
  const kind = error instanceof SegmentError ? 'damage' : error instanceof SyncError ? 'sync' : 'other';
  return { failed: errorText(error), kind };
}
