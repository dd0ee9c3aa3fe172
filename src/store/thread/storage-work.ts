/**
 * The work of the storage thread: compresses, checksums and writes what commits bring, and compacts rows and
 * seals usage in between, so that the serving thread does not have to. A commit waits for a compaction no
 * longer than a slice of it, and a POST no longer for a commit.
 */

import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { SORTED_BLOCK_BYTES } from '../../../engine/limits.js';
import { compactRuns } from '../../../engine/rows/compaction.js';
import { SegmentError } from '../../../engine/segments.js';
import type { Steps } from '../../../engine/steps.js';
import { sealPart } from '../../../engine/usage/sealed/seal.js';
import { partFile } from '../../../engine/usage/sealed/sealed-part.js';
import { free } from '../../freed.js';
import { monotonicUs } from '../../system-clock.js';
import { type CompactionDisk, CompactionFiles } from '../blocks/compaction-files.js';
import type { Disk } from '../disk/disk.js';
import { FileAppender } from '../disk/file-appender.js';
import { Folders } from '../disk/folders.js';
import { Removals } from '../disk/removals.js';
import { errorText, SyncError } from '../disk/system-errors.js';
import { writeCheckpoint } from '../journal/checkpoint.js';
import { STORAGE_SLICE_MS } from '../limits.js';
import { compressing } from '../values/checked-value.js';
import { wrapping } from '../values/envelope.js';
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

type Step<Result> = IteratorResult<void | Promise<void>, Result>;

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
  /** What came while files are written, synced or removed, in order. */
  readonly #waiting: Question[] = [];
  /** Of the questions that files are being written, synced or removed for. */
  #underWayCount = 0;
  /** A write is under way. */
  #isWriting = false;
  /** Slices of what gives way to it. */
  readonly #givingWay: (() => void)[] = [];

  constructor(ports: StoragePorts) {
    this.#ports = ports;
    this.#folders = new Folders(ports.disk);
    this.#removals = new Removals(ports.disk);
    this.#appender = new FileAppender(ports.disk, this.#folders, this.#removals);
  }

  /** Does what is asked, in order, and answers; what takes longer goes on later. What fails is answered too. */
  take(question: Question): void {
    this.#waiting.push(question);
    this.#begin();
  }

  #begin(): void {
    const passed = new Set<string>();
    for (let i = 0; i < this.#waiting.length; ) {
      const question = this.#waiting[i];
      const paths = namedPaths(question);
      const mayPass = question.do === 'append' && paths.every((path) => !passed.has(path));
      if (this.#mayBegin(question) && (i === 0 || mayPass)) {
        this.#waiting.splice(i, 1);
        this.#do(question);
      } else {
        for (const path of paths) passed.add(path);
        i += 1;
      }
    }
  }

  /**
   * While files are written, synced or removed no other question is begun but an append to other files, which also
   * passes those that wait: a POST does not wait for a commit's segments and files of blocks. Nor does it for a
   * checkpoint that comes between, which has a file of its own.
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
        case 'write':
          this.#after(this.#written(question), id);
          break;
        case 'append':
          for (const { path, bytes } of question.additions) this.#appender.appendAndHold(path, bytes);
          this.#afterSync(this.#appender.syncAppended(question.additions), id);
          for (const { bytes } of question.additions) free(bytes);
          break;
        case 'checkpoint':
          this.#answerLater(this.#inSlices(writeCheckpoint(this.#compactionDisk(), question)), id);
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
          this.#answerLater(this.#compact(question), id);
          break;
        case 'seal':
          this.#answerLater(this.#seal(question), id);
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
    void this.#answerLater(work, id).then(() => {
      this.#underWayCount -= 1;
      this.#begin();
    });
  }

  #answerLater(work: Promise<Done>, id: number): Promise<void> {
    return work.then(
      (done) => this.#answer({ id, done }),
      (error: unknown) => this.#answer({ id, ...failure(error) }),
    );
  }

  async #removeAll(paths: readonly string[]): Promise<Removed> {
    for (const path of paths) await this.#removals.removeLater(path);
    return { left: this.#removals.left() };
  }

  #answer(message: StorageAnswer): void {
    this.#ports.answer(message, 'done' in message ? ownBytesOf(message.done) : []);
  }

  async #written(question: StorageQuestion & { readonly do: 'write' }): Promise<Written> {
    this.#isWriting = true;
    try {
      return await this.#inSlices(this.#write(question), (slice) => this.#ports.later(slice));
    } finally {
      this.#isWriting = false;
      // Of a commit with several they give way to all.
      if (!this.#waiting.some((waiting) => waiting.do === 'write'))
        for (const slice of this.#givingWay.splice(0)) this.#ports.later(slice);
    }
  }

  *#write({ arena, items }: StorageQuestion & { readonly do: 'write' }): Steps<Written> {
    const values: Uint8Array[] = [];
    const lengths: number[] = [];
    let byteCount = 0;
    let start = 0;
    for (const { name, end, path } of items) {
      const raw = new Uint8Array(arena, start, end - start);
      start = end;
      const value = yield* path === null ? wrapping(name, raw) : compressing(name, raw);
      lengths.push(value.length);
      if (path !== null) {
        yield this.#appender.roomFor(path);
        this.#appender.append(path, value);
      } else {
        yield;
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

  async #compact(question: StorageQuestion & { readonly do: 'compact' }): Promise<Compacted> {
    const { plan, chunkBytes, namePrefix, folder, inputs } = question;
    const { blockBytes } = this.#ports;
    const files = new CompactionFiles(this.#compactionDisk(), namePrefix, folder, inputs);
    const compact = function* (): Steps<Compacted> {
      const directory = yield* compactRuns(plan, files, { chunkBytes, blockBytes });
      const frameEnds = yield* files.finish(plan.output);
      return { frameEnds, directory };
    };
    return await this.#inSlicesOrAbandoned(compact(), files);
  }

  async #seal({ plan, namePrefix, folder }: StorageQuestion & { readonly do: 'seal' }): Promise<Sealed> {
    const files = new CompactionFiles(this.#compactionDisk(), namePrefix, folder, []);
    const seal = function* (): Steps<Sealed> {
      const summary = yield* sealPart(plan, files);
      return { frameEnds: yield* files.finish(partFile(plan.name)), summary };
    };
    return await this.#inSlicesOrAbandoned(seal(), files);
  }

  #compactionDisk(): CompactionDisk {
    const { disk } = this.#ports;
    const sync = (descriptor: number): Promise<void> => disk.syncAll([descriptor]);
    return { disk, folders: this.#folders, removals: this.#removals, sync };
  }

  /** Removes what is begun when the steps fail. */
  async #inSlicesOrAbandoned<Result>(steps: Steps<Result>, files: CompactionFiles): Promise<Result> {
    try {
      return await this.#inSlices(steps);
    } catch (error) {
      files.abandon();
      throw error;
    }
  }

  #afterWrites(slice: () => void): void {
    if (this.#isWriting) this.#givingWay.push(slice);
    else this.#ports.later(slice);
  }

  /** Takes the steps in slices, the first at once. */
  #inSlices<Result>(
    steps: Steps<Result>,
    later = (slice: () => void): void => this.#afterWrites(slice),
  ): Promise<Result> {
    const next = () => steps.next();
    return new Promise((resolve, reject) => {
      const slice = (resume: () => Step<Result>): void => {
        try {
          const step = this.#advance(resume, next);
          if (step.done === true) resolve(step.value);
          else if (step.value === undefined) later(() => slice(next));
          else
            step.value.then(
              () => later(() => slice(next)),
              (error: unknown) => later(() => slice(() => steps.throw(error))),
            );
        } catch (error) {
          reject(error);
        }
      };
      slice(next);
    });
  }

  /** Goes on for a slice, up to something to wait for, or to the end. */
  #advance<Result>(resume: () => Step<Result>, next: () => Step<Result>): Step<Result> {
    const { monotonicUs } = this.#ports;
    const endUs = monotonicUs() + STORAGE_SLICE_MS * 1000;
    for (let step = resume(); ; step = next())
      if (step.done === true || step.value !== undefined || monotonicUs() >= endUs) return step;
  }
}

/** What is not copied to the other thread. */
function ownBytesOf(done: Done): ArrayBuffer[] {
  if (done === null) return [];
  if ('sealed' in done) return [done.sealed];
  return 'directory' in done && done.directory !== null ? [done.directory.buffer] : [];
}

/**
 * The files that an append must not pass. Others are changed too, but no append is to them: a write's are files of
 * blocks, and a checkpoint has its own.
 */
function namedPaths(question: StorageQuestion): readonly string[] {
  switch (question.do) {
    case 'append':
      return question.additions.map(({ path }) => path);
    case 'cut-back':
      return question.ends.map(({ path }) => path);
    case 'remove':
      return question.paths;
    default:
      return [];
  }
}

function failure(error: unknown): { failed: string; kind: FailureKind } {
  const kind = error instanceof SegmentError ? 'damage' : error instanceof SyncError ? 'sync' : 'other';
  return { failed: errorText(error), kind };
}
