/**
 * A shard as the ingest thread sees it: what is applied to it leaves in packs for the serving thread, which
 * has the real one. How far it was read is known here without asking, as nobody else moves it.
 */

import type { EdgeEntry, RelayEntry } from '../../engine/entry.js';
import type { BufferPool } from '../../ingest/buffer-pool.js';
import type { LogIdentity, LogRecord, PartitionKey } from '../../ingest/log-source.js';
import type { ShardPort } from '../../ingest/pipeline.js';
import { type Mark, Marks, markOf } from '../../ingest/record-marks.js';
import { PackBuilder, type RecordPack } from '../../ingest/record-pack.js';
import { MARK_ELEMENTS, PACK_BYTES, PACK_ELEMENTS } from './limits.js';
import type { StoredState } from './protocol.js';

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
  readonly key: PartitionKey;
  readonly #builder: PackBuilder;
  readonly #ports: PackPorts;
  readonly #marks: Marks;
  #lastRecordMs: number | null = null;
  /** The last record of the pack, while it has no mark. */
  #unmarked: LogRecord | null = null;
  #markedElements = 0;
  #lastSent: Promise<void> = Promise.resolve();

  constructor(key: PartitionKey, kind: RecordPack['kind'], stored: StoredState, ports: PackPorts) {
    this.key = key;
    this.#builder = new PackBuilder(kind, ports.buffers);
    this.nextOffset = stored.nextOffset;
    this.identity = stored.identity;
    this.#marks = new Marks(stored.marks);
    this.#ports = ports;
  }

  get marks(): readonly Mark[] {
    return this.#marks.oldestFirst;
  }

  setIdentity(identity: LogIdentity): void {
    this.identity = identity;
    this.#ports.setIdentity(this.key, identity);
  }

  moveTo(nextOffset: number): void {
    this.nextOffset = nextOffset;
    this.#marks.moveTo(nextOffset);
  }

  applyRecord(
    entries: readonly Entry[],
    rejectedReasons: readonly string[],
    nextOffset: number,
    record: LogRecord | null,
  ): void {
    const builder = this.#builder;
    builder.add({ entries, rejectedReasons, nextOffset });
    this.nextOffset = nextOffset;
    this.#lastRecordMs = record?.timestampMs ?? this.#lastRecordMs;
    this.#unmarked = record ?? this.#unmarked;
    // Records may have no entries: what is empty or unusable counts too.
    const elementCount = Math.max(builder.entryCount, builder.recordCount);
    if (elementCount >= PACK_ELEMENTS || builder.byteCount >= PACK_BYTES) this.#send();
    else if (elementCount - this.#markedElements >= MARK_ELEMENTS) this.#mark(elementCount);
  }

  /** Sends what is left; resolves when everything is applied. */
  flush(): Promise<void> {
    if (this.#builder.recordCount > 0) this.#send();
    return this.#lastSent;
  }

  #mark(elementCount: number): void {
    const mark = this.#unmarked === null ? null : markOf(this.#unmarked);
    this.#unmarked = null;
    this.#markedElements = elementCount;
    if (mark === null) return;
    this.#builder.mark(mark);
    this.#marks.note(mark);
  }

  #send(): void {
    this.#mark(0);
    this.#lastSent = this.#ports.send(this.key, this.#builder.take(), this.#lastRecordMs);
  }
}
