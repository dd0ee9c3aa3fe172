/** What is read of shards: segments and blocks, as the commit under way leaves them, else as they are stored. */

import { SegmentError, type SegmentReader } from '../../engine/segments.js';
import type { BlockCache } from './blocks/block-cache.js';
import type { BlockFiles } from './blocks/block-files.js';
import { FILE_KEY } from './blocks/file-records.js';
import type { CommitBatch } from './commit-batch.js';
import type { Journals } from './journal/journals.js';
import { openEnvelope } from './values/envelope.js';

export interface StoredSegmentsPorts {
  readonly journals: Journals;
  readonly files: BlockFiles;
  readonly cache: BlockCache;
  /** What the commit under way has written and the journals and files don't show yet. */
  readonly batch: () => CommitBatch | null;
}

export class StoredSegments {
  readonly #ports: StoredSegmentsPorts;

  constructor(ports: StoredSegmentsPorts) {
    this.#ports = ports;
  }

  /** Those that have segments. */
  scopes(): string[] {
    return this.#ports.journals.scopes().filter((scope) => this.#names(scope, '').length > 0);
  }

  /** Once the scope goes or is replaced, all that it does throws a SegmentError. */
  reader(scope: string): SegmentReader {
    const { files } = this.#ports;
    const life = files.lifeOf(scope);
    const assertHere = () => {
      if (files.lifeOf(scope) !== life) throw new SegmentError(`what was here of ${scope} has gone`);
    };
    // A query reads one block of a file after another.
    let last = { file: '', fileKey: '' };
    const fileKeyOf = (file: string): string => {
      if (last.file !== file) last = { file, fileKey: `${scope}:${file}` };
      return last.fileKey;
    };
    return {
      get: (name) => {
        assertHere();
        return this.#get(`${scope}:${name}`);
      },
      list: (prefix) => {
        assertHere();
        return this.#list(scope, prefix);
      },
      block: (file, index) => {
        assertHere();
        return this.#block(fileKeyOf(file), index);
      },
      blockCount: (file) => {
        assertHere();
        return files.blockCount(fileKeyOf(file));
      },
    };
  }

  /** Keys, with their scope, of segments that are stored. */
  keysOf(prefix: string): string[] {
    const { scope, rest } = splitKey(prefix);
    return this.#names(scope, rest).map((name) => `${scope}:${name}`);
  }

  #get(key: string): Uint8Array | null {
    const { journals, cache, batch } = this.#ports;
    const pending = batch()?.segments.get(key);
    if (pending !== undefined) return pending;
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const { scope, rest } = splitKey(key);
    const value = journals.shard(scope).get(rest);
    if (value === undefined) return null;
    const bytes = openEnvelope(key, value);
    cache.set(key, bytes);
    return bytes;
  }

  #block(fileKey: string, index: number): Uint8Array {
    const { files, batch } = this.#ports;
    return batch()?.block(fileKey, index) ?? files.block(fileKey, index);
  }

  *#list(scope: string, prefix: string): Iterable<{ name: string; bytes: Uint8Array }> {
    const { journals, batch } = this.#ports;
    const keyPrefix = `${scope}:${prefix}`;
    for (const key of batch()?.keysOf(keyPrefix) ?? this.keysOf(keyPrefix)) {
      const pending = batch()?.segments.get(key);
      if (pending === null) continue;
      const name = key.slice(scope.length + 1);
      if (pending !== undefined) {
        yield { name, bytes: pending };
        continue;
      }
      const value = journals.shard(scope).get(name);
      if (value === undefined) throw new SegmentError(`segment ${key} went while it was listed`);
      yield { name, bytes: openEnvelope(key, value) };
    }
  }

  /** Of segments that are stored. */
  #names(scope: string, prefix: string): string[] {
    const names = this.#ports.journals.shard(scope).keys(prefix);
    return prefix === '' ? names.filter((name) => !name.startsWith(FILE_KEY)) : names;
  }
}

/** Of a key, scope and colon and name, or of what it begins with. */
export function splitKey(key: string): { readonly scope: string; readonly rest: string } {
  const colon = key.indexOf(':');
  return { scope: key.slice(0, colon), rest: key.slice(colon + 1) };
}
