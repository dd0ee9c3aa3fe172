/**
 * A shard as the ingest thread sees it: what is applied to it leaves in packs for the serving thread, which has the
 * real one. How far it was read is known here without asking, as nobody else moves it.
 */

import type { EdgeEntry, RelayEntry } from '../../engine/entry.js';
import type { BufferPool } from '../../ingest/buffer-pool.js';
import type { LogIdentity, PartitionKey } from '../../ingest/log-source.js';
import type { ShardPort } from '../../ingest/pipeline.js';
import { PackBuilder, type RecordPack } from '../../ingest/record-pack.js';
import { PACK_BYTES, PACK_ELEMENTS } from './limits.js';

type Entry = EdgeEntry | RelayEntry;

export interface PackPorts {
  /** Where packs get their buffers from. */
  readonly buffers: BufferPool;
  /** Sends a pack off; resolves when it is applied. */
  readonly send: (key: PartitionKey, pack: RecordPack, lastRecordMs: number | null) => Promise<void>;
  readonly setIdentity: (key: PartitionKey, identity: LogIdentity) => void;
}

export class PackShard implements ShardPort {
  nextOffset: number | null;
  identity: LogIdentity | null;
  readonly #key: PartitionKey;
  readonly #builder: PackBuilder;
  readonly #ports: PackPorts;
  #lastRecordMs: number | null = null;
  #lastSent: Promise<void> = Promise.resolve();

  constructor(
    key: PartitionKey,
    kind: RecordPack['kind'],
    stored: { readonly nextOffset: number | null; readonly identity: LogIdentity | null },
    ports: PackPorts,
  ) {
    this.#key = key;
    this.#builder = new PackBuilder(kind, ports.buffers);
    this.nextOffset = stored.nextOffset;
    this.identity = stored.identity;
    this.#ports = ports;
  }

  setIdentity(identity: LogIdentity): void {
    this.identity = identity;
    this.#ports.setIdentity(this.#key, identity);
  }

  moveTo(nextOffset: number): void {
    this.nextOffset = nextOffset;
  }

  applyRecord(
    entries: readonly Entry[],
    rejectedReasons: readonly string[],
    nextOffset: number,
    recordMs: number | null,
  ): void {
    const builder = this.#builder;
    builder.add({ entries, rejectedReasons, nextOffset });
    this.nextOffset = nextOffset;
    this.#lastRecordMs = recordMs ?? this.#lastRecordMs;
    // Records may have no entries: what is empty or unusable counts too.
    const elementCount = Math.max(builder.entryCount, builder.recordCount);
    if (elementCount >= PACK_ELEMENTS || builder.byteCount >= PACK_BYTES) this.#send();
  }

  /** Sends what is left; resolves when everything is applied. */
  flush(): Promise<void> {
    if (this.#builder.recordCount > 0) this.#send();
    return this.#lastSent;
  }

  #send(): void {
    this.#lastSent = this.#ports.send(this.#key, this.#builder.take(), this.#lastRecordMs);
  }
}
