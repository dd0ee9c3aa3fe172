/**
 * The serving thread's side of the storage thread. What is to be written is copied into one of two shared
 * arenas, which are used again and again; the segments' values come back as one buffer for all: allocating
 * native memory, above all zlib's, is what holds up the serving thread, so it happens over there.
 *
 *   items ──copy──▶ arena A ──▶ thread ──▶ values of A's segments, one buffer; A's blocks are in their files
 *         ──copy──▶ arena B ──▶    "   ──▶ the same of B
 */

import { SegmentError } from '../../../engine/segments.js';
import type { Leftover } from '../disk/leftovers.js';
import { SyncError } from '../disk/system-errors.js';
import type { CheckpointPlaces } from '../journal/journal.js';
import { COMPRESS_FROM_BYTES } from '../limits.js';
import { rawEnvelope } from '../values/envelope.js';
import type { StartStorage, StorageLink } from './storage-link.js';
import type {
  Addition,
  Compacted,
  Done,
  FailureKind,
  FileEnd,
  LinkedFile,
  Removed,
  Sealed,
  StorageAnswer,
  StorageQuestion,
  WriteItem,
  Written,
} from './storage-protocol.js';

export interface Unwritten {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The file that a block is added to; null for a segment. */
  readonly path: string | null;
}

/** Of a segment the value to store; of a block how long its frame is. */
export interface WriteResult {
  readonly value: Uint8Array | null;
  readonly length: number;
}

/** There is no storage thread any more: nothing is written in this process's life. */
export class StorageEndedError extends Error {
  override name = 'StorageEndedError';
}

interface Waiting {
  readonly resolve: (done: Done) => void;
  readonly reject: (error: Error) => void;
}

export class StorageThread {
  readonly #link: StorageLink;
  readonly #arenas: readonly SharedArrayBuffer[];
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 0;
  /** Why the thread is no more. */
  #failure: Error | null = null;
  /** Writes come one after another, as they share the arenas. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(start: StartStorage, arenaBytes: number) {
    this.#arenas = [new SharedArrayBuffer(arenaBytes), new SharedArrayBuffer(arenaBytes)];
    this.#link = start({
      answered: (answer) => this.#receive(answer),
      failed: (error) => this.#fail(error),
    });
  }

  /**
   * Seals segments and adds blocks to their files, in the order given. The bytes stay the caller's, to be
   * read meanwhile but not changed. Rejects when a file can't be written, and nothing more is added to any by
   * then, or when the thread has died; it is not started again, as what a commit wrote counts as saved.
   */
  write(items: readonly Unwritten[]): Promise<WriteResult[]> {
    const written = this.#turn.then(() => this.#write(items));
    // A turn that fails is its caller's concern; the next one fails by itself.
    this.#turn = written.then(
      () => undefined,
      () => undefined,
    );
    return written;
  }

  /**
   * Adds bytes at the end of files, and makes that durable. Rejects with what the system said: what was added
   * may then be there in part, and is to be cut back, unless it is a SyncError. The bytes, whole buffers, are
   * handed over.
   */
  async append(additions: readonly Addition[]): Promise<void> {
    const buffers = additions.map(({ bytes }) => bytes.buffer);
    await this.#ask({ do: 'append', additions }, buffers);
  }

  /** See writeCheckpoint. Rejects with a SegmentError when the journal is damaged; then nothing is left. */
  async checkpoint(
    question: Omit<StorageQuestion & { readonly do: 'checkpoint' }, 'do'>,
  ): Promise<CheckpointPlaces> {
    return (await this.#ask({ do: 'checkpoint', ...question })) as CheckpointPlaces;
  }

  /** Makes durable what was written to files. */
  async sync(): Promise<void> {
    await this.#ask({ do: 'sync' });
  }

  /** Takes back, durably, what was added to files behind these ends, after a write that failed. */
  async cutBack(ends: readonly FileEnd[]): Promise<void> {
    await this.#ask({ do: 'cut-back', ends });
  }

  /**
   * Removes files; those that are missing are no error. Resolves to all that the disk did not let go so far.
   */
  async remove(paths: readonly string[]): Promise<readonly Leftover[]> {
    return ((await this.#ask({ do: 'remove', paths })) as Removed).left;
  }

  /** Makes a hard link to each file in a folder. Rejects with what the system said; then there are none. */
  async link(folder: string, names: readonly LinkedFile[]): Promise<void> {
    await this.#ask({ do: 'link', folder, names });
  }

  /** Rejects with a SegmentError when an input is damaged; then nothing is left of the output. */
  async compact(question: Omit<StorageQuestion & { readonly do: 'compact' }, 'do'>): Promise<Compacted> {
    return (await this.#ask({ do: 'compact', ...question })) as Compacted;
  }

  /** Rejects when the file can't be written; then nothing is left of it. */
  async seal(question: Omit<StorageQuestion & { readonly do: 'seal' }, 'do'>): Promise<Sealed> {
    return (await this.#ask({ do: 'seal', ...question })) as Sealed;
  }

  /** Waits for writes under way, then ends the thread; a compaction or seal is broken off. */
  async stop(): Promise<void> {
    await this.#turn;
    this.#fail(new Error('the storage thread is stopped'));
    await this.#link.stop();
  }

  async #write(items: readonly Unwritten[]): Promise<WriteResult[]> {
    const results: WriteResult[] = new Array(items.length);
    const sent: number[] = [];
    for (const [i, { name, bytes, path }] of items.entries()) {
      if (path !== null || bytes.length >= COMPRESS_FROM_BYTES) sent.push(i);
      else {
        const value = rawEnvelope(name, bytes);
        results[i] = { value, length: value.length };
      }
    }
    let next = 0;
    let hasFailed = false;
    const takeBatch = (): number[] => {
      if (hasFailed) return [];
      const first = next;
      let byteCount = 0;
      while (next < sent.length) {
        byteCount += items[sent[next]].bytes.length;
        if (byteCount > this.#arenas[0].byteLength && next > first) break;
        next += 1;
      }
      return sent.slice(first, next);
    };
    // Batches are sent in order, and the thread takes them in order, so the blocks of a file stay in order.
    const fillAndSend = async (arena: SharedArrayBuffer): Promise<void> => {
      for (let batch = takeBatch(); batch.length > 0; batch = takeBatch()) {
        const written = await this.#writeBatch(
          arena,
          batch.map((i) => items[i]),
        ).catch((error: unknown) => {
          hasFailed = true;
          throw error;
        });
        for (const [k, i] of batch.entries()) results[i] = written[k];
      }
    };
    for (const lane of await Promise.allSettled(this.#arenas.map(fillAndSend)))
      if (lane.status === 'rejected') throw lane.reason;
    return results;
  }

  async #writeBatch(arena: SharedArrayBuffer, batch: readonly Unwritten[]): Promise<WriteResult[]> {
    let byteCount = 0;
    const items = batch.map(({ name, bytes, path }): WriteItem => {
      byteCount += bytes.length;
      return { name, path, end: byteCount };
    });
    // What is larger than an arena comes alone, and gets its own.
    const target = byteCount <= arena.byteLength ? arena : new SharedArrayBuffer(byteCount);
    const room = new Uint8Array(target);
    for (const [i, { bytes }] of batch.entries()) room.set(bytes, items[i].end - bytes.length);
    const { sealed, lengths } = (await this.#ask({ do: 'write', arena: target, items })) as Written;
    let start = 0;
    return batch.map(({ path }, i) => {
      const length = lengths[i];
      if (path !== null) return { value: null, length };
      start += length;
      return { value: new Uint8Array(sealed, start - length, length), length };
    });
  }

  #ask(question: StorageQuestion, transferred: readonly ArrayBuffer[] = []): Promise<Done> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    // The process stays for an answer it waits for.
    if (this.#waiting.size === 0) this.#link.ref();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#link.post({ ...question, id }, transferred);
    });
  }

  #receive(answer: StorageAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    // It was broken off.
    if (waiting === undefined) return;
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#link.unref();
    if ('done' in answer) waiting.resolve(answer.done);
    else waiting.reject(errorOf(answer));
  }

  #fail(error: Error): void {
    this.#failure ??= new StorageEndedError(error.message, { cause: error });
    for (const { reject } of this.#waiting.values()) reject(this.#failure);
    this.#waiting.clear();
  }
}

function errorOf({ failed, kind }: { readonly failed: string; readonly kind: FailureKind }): Error {
  if (kind === 'damage') return new SegmentError(failed);
  return kind === 'sync' ? new SyncError(failed) : new Error(failed);
}
