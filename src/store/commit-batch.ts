/**
 * What one commit writes, gathered from the saves of all shards; it can be read from here until the commit is
 * durable.
 */

import type { SegmentWriter } from '../../engine/segments.js';
import type { BlockFiles } from './blocks/block-files.js';
import type { StoredSegments } from './stored-segments.js';

export class CommitBatch {
  readonly #stored: StoredSegments;
  readonly #files: BlockFiles;
  /** Segments by key; null deletes. */
  readonly segments = new Map<string, Uint8Array | null>();
  /** Blocks to be added, by the key of their file. */
  readonly appended = new Map<string, Uint8Array[]>();
  /** To be called once the blocks can be read from their files. */
  readonly onStored: (() => void)[] = [];
  readonly #firstAppended = new Map<string, number>();
  /** Of segments and blocks. */
  byteCount = 0;
  readonly adopted: string[] = [];
  readonly removed: string[] = [];

  constructor(stored: StoredSegments, files: BlockFiles) {
    this.#stored = stored;
    this.#files = files;
  }

  writer(scope: string): SegmentWriter {
    const keyOf = (name: string): string => `${scope}:${name}`;
    return {
      put: (name, bytes) => {
        this.byteCount += bytes.length;
        this.segments.set(keyOf(name), bytes);
      },
      delete: (name) => void this.segments.set(keyOf(name), null),
      deletePrefix: (prefix) => {
        for (const key of this.#stored.keysOf(keyOf(prefix))) this.segments.set(key, null);
      },
      append: (file, bytes, onStored) => {
        this.#append(keyOf(file), bytes);
        if (onStored !== undefined) this.onStored.push(onStored);
      },
      adopt: (file) => void this.adopted.push(keyOf(file)),
      remove: (file) => void this.removed.push(keyOf(file)),
    };
  }

  /** Keys of segments that are stored or that the batch writes or deletes, in order. */
  keysOf(prefix: string): string[] {
    const own = [...this.segments.keys()].filter((key) => key.startsWith(prefix));
    return [...new Set([...this.#stored.keysOf(prefix), ...own])].sort();
  }

  /** A block that is being added. */
  block(fileKey: string, index: number): Uint8Array | undefined {
    const first = this.#firstAppended.get(fileKey);
    return first === undefined ? undefined : this.appended.get(fileKey)![index - first];
  }

  firstAppended(fileKey: string): number {
    return this.#firstAppended.get(fileKey)!;
  }

  #append(fileKey: string, bytes: Uint8Array): void {
    this.byteCount += bytes.length;
    const blocks = this.appended.get(fileKey);
    if (blocks !== undefined) blocks.push(bytes);
    else {
      this.appended.set(fileKey, [bytes]);
      this.#firstAppended.set(fileKey, this.#files.blockCount(fileKey));
    }
  }
}
