/** How the serving thread reaches the storage thread: a worker, or what is put in its place. */

import { Worker } from 'node:worker_threads';
import type { StorageAnswer, StorageQuestion } from './storage-protocol.js';

/**
 * Takes questions, and answers each in a later turn; writes, syncs and removals in the order in which they
 * were asked, except that an append waits for no other files to be written, synced or removed; nor does a checkpoint
 * that is next in line.
 */
export interface StorageLink {
  /** Buffers that are transferred are gone here. */
  post(question: StorageQuestion & { readonly id: number }, transferred?: readonly ArrayBuffer[]): void;
  /** From now on the process stays for it, or doesn't. */
  ref(): void;
  unref(): void;
  /** What is under way is broken off. */
  stop(): Promise<unknown>;
}

export interface StorageListener {
  answered(answer: StorageAnswer): void;
  /** It is gone: nothing more will be answered. */
  failed(error: Error): void;
}

export type StartStorage = (listener: StorageListener) => StorageLink;

const WORKER_SCRIPT = new URL('./storage-worker.js', import.meta.url);

/** Starts a worker. It runs storage-worker.js, unless another script is to make the work. */
export function startStorageWorker(listener: StorageListener, script: URL = WORKER_SCRIPT): StorageLink {
  // Options of the process, such as a debugger's port, are not the thread's.
  const worker = new Worker(script, { name: 'logring-storage', execArgv: [] });
  worker.on('message', (answer: StorageAnswer) => listener.answered(answer));
  worker.on('error', (error) => listener.failed(error));
  worker.on('exit', (code) =>
    listener.failed(new Error(`the storage thread ended by itself (code ${code})`)),
  );
  worker.unref();
  return {
    post: (question, transferred = []) => worker.postMessage(question, transferred),
    ref: () => worker.ref(),
    unref: () => worker.unref(),
    stop: () => worker.terminate(),
  };
}
