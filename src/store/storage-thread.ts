/**
 * The serving thread's side of the storage thread. What is to be sealed is copied into one of two shared arenas, which
 * are used again and again, and comes back as one buffer for all: allocating native memory, above all zlib's, is what
 * holds up the serving thread, so it happens over there.
 *
 *   segments ──copy──▶ arena A ──▶ thread ──▶ sealed values of A, one buffer
 *            ──copy──▶ arena B ──▶    "   ──▶ sealed values of B
 */

import { Worker } from 'node:worker_threads';
import { rawEnvelope } from './envelope.js';
import { ARENA_BYTES, COMPRESS_FROM_BYTES } from './limits.js';
import type { SealReply, SealRequest } from './storage-protocol.js';

export interface Unsealed {
  readonly name: string;
  readonly bytes: Uint8Array;
}

interface Waiting {
  readonly resolve: (reply: SealReply) => void;
  readonly reject: (error: Error) => void;
}

export class StorageThread {
  readonly #worker: Worker;
  readonly #arenas = [new SharedArrayBuffer(ARENA_BYTES), new SharedArrayBuffer(ARENA_BYTES)];
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 0;
  /** Why the thread is no more. */
  #failure: Error | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor() {
    // Options of the process, such as a debugger's port, are not the thread's.
    this.#worker = new Worker(new URL('./storage-worker.js', import.meta.url), {
      name: 'logring-storage',
      execArgv: [],
    });
    this.#worker.on('message', (reply: SealReply) => this.#receive(reply));
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', (code) =>
      this.#fail(new Error(`the storage thread ended by itself (code ${code})`)),
    );
    this.#worker.unref();
  }

  /**
   * The values to store, in the order given. The bytes stay the caller's, to be read meanwhile but not changed. Rejects
   * when the thread has died; it is not started again, as what a commit wrote counts as saved.
   */
  seal(segments: readonly Unsealed[]): Promise<Uint8Array[]> {
    const sealed = this.#turn.then(() => this.#seal(segments));
    // A turn that fails is its caller's concern; the next one fails by itself.
    this.#turn = sealed.then(
      () => undefined,
      () => undefined,
    );
    return sealed;
  }

  /** Waits for what is under way, then ends the thread. */
  async stop(): Promise<void> {
    await this.#turn;
    this.#failure ??= new Error('the storage thread is stopped');
    await this.#worker.terminate();
  }

  async #seal(segments: readonly Unsealed[]): Promise<Uint8Array[]> {
    const sealed: Uint8Array[] = new Array(segments.length);
    const large: number[] = [];
    for (const [i, { name, bytes }] of segments.entries()) {
      if (bytes.length < COMPRESS_FROM_BYTES) sealed[i] = rawEnvelope(name, bytes);
      else large.push(i);
    }
    let next = 0;
    const takeBatch = (): number[] => {
      const first = next;
      let byteCount = 0;
      while (next < large.length) {
        byteCount += segments[large[next]].bytes.length;
        if (byteCount > ARENA_BYTES && next > first) break;
        next += 1;
      }
      return large.slice(first, next);
    };
    const fillAndSeal = async (arena: SharedArrayBuffer): Promise<void> => {
      for (let batch = takeBatch(); batch.length > 0; batch = takeBatch()) {
        const values = await this.#sealBatch(
          arena,
          batch.map((i) => segments[i]),
        );
        for (const [k, i] of batch.entries()) sealed[i] = values[k];
      }
    };
    await Promise.all(this.#arenas.map(fillAndSeal));
    return sealed;
  }

  async #sealBatch(arena: SharedArrayBuffer, batch: readonly Unsealed[]): Promise<Uint8Array[]> {
    const ends: number[] = [];
    let byteCount = 0;
    for (const { bytes } of batch) {
      byteCount += bytes.length;
      ends.push(byteCount);
    }
    // A segment larger than an arena comes alone, and gets its own.
    const target = byteCount <= arena.byteLength ? arena : new SharedArrayBuffer(byteCount);
    const room = new Uint8Array(target);
    for (const [i, { bytes }] of batch.entries()) room.set(bytes, ends[i] - bytes.length);
    const reply = await this.#ask({ names: batch.map(({ name }) => name), arena: target, ends });
    return reply.ends.map((end, i) => {
      const start = i === 0 ? 0 : reply.ends[i - 1];
      return new Uint8Array(reply.sealed, start, end - start);
    });
  }

  #ask(question: Omit<SealRequest, 'id'>): Promise<SealReply> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    // The process stays for an answer it waits for.
    if (this.#waiting.size === 0) this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ ...question, id } satisfies SealRequest);
    });
  }

  #receive(reply: SealReply): void {
    const waiting = this.#waiting.get(reply.id)!;
    this.#waiting.delete(reply.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    waiting.resolve(reply);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#failure);
    this.#waiting.clear();
  }
}
