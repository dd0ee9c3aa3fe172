/**
 * A shard as the ingest thread sees it: what is applied to it leaves in packs for the serving thread, which has the
 * real one. How far it was read is known here without asking, as nobody else moves it.
 */

import type { EdgeEntry, RelayEntry } from '../../engine/entry.js';
import type { LogIdentity, PartitionKey } from '../../ingest/log-source.js';
import type { ShardPort } from '../../ingest/pipeline.js';
import { type AppliedRecord, packEdge, packRelay, type RecordPack } from '../../ingest/record-pack.js';
import { PACK_BYTES, PACK_ELEMENTS } from './limits.js';

type Entry = EdgeEntry | RelayEntry;

export interface PackPorts {
  /** Sends a pack off; resolves when it is applied. */
  readonly send: (key: PartitionKey, pack: RecordPack, lastRecordMs: number | null) => Promise<void>;
  readonly setIdentity: (key: PartitionKey, identity: LogIdentity) => void;
}

export class PackShard implements ShardPort {
  nextOffset: number | null;
  identity: LogIdentity | null;
  readonly #key: PartitionKey;
  readonly #kind: RecordPack['kind'];
  readonly #ports: PackPorts;
  #records: AppliedRecord<Entry>[] = [];
  #elementCount = 0;
  #byteCount = 0;
  #lastRecordMs: number | null = null;
  #lastSent: Promise<void> = Promise.resolve();

  constructor(
    key: PartitionKey,
    kind: RecordPack['kind'],
    stored: { readonly nextOffset: number | null; readonly identity: LogIdentity | null },
    ports: PackPorts,
  ) {
    this.#key = key;
    this.#kind = kind;
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
    this.#records.push({ entries, rejectedReasons, nextOffset });
    this.#elementCount += entries.length;
    this.nextOffset = nextOffset;
    this.#lastRecordMs = recordMs ?? this.#lastRecordMs;
    if (this.#kind === 'edge') {
      for (const { row } of entries as readonly EdgeEntry[]) this.#byteCount += row.length;
    }
    if (this.#elementCount >= PACK_ELEMENTS || this.#byteCount >= PACK_BYTES) this.#send();
  }

  /** Sends what is left; resolves when everything is applied. */
  flush(): Promise<void> {
    if (this.#records.length > 0) this.#send();
    return this.#lastSent;
  }

  #send(): void {
    const records = this.#records;
    this.#records = [];
    this.#elementCount = 0;
    this.#byteCount = 0;
    const pack =
      this.#kind === 'edge'
        ? packEdge(records as AppliedRecord<EdgeEntry>[])
        : packRelay(records as AppliedRecord<RelayEntry>[]);
    this.#lastSent = this.#ports.send(this.#key, pack, this.#lastRecordMs);
  }
}
