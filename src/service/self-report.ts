/**
 * What the service says of itself to operators: whether it is ready, how it is, and what repairs have
 * dropped.
 */

import type { DeadLetterSamples } from '../../ingest/dead-letter-samples.js';
import type { Gaps } from '../../ingest/gaps.js';
import type { LogSourceStatus } from '../../ingest/log-source.js';
import type { Cluster } from '../cluster/cluster.js';
import type { Config } from '../config.js';
import type { ServiceStatus } from '../console/service-status.js';
import type { ResultCache } from '../http/query/cache.js';
import { type DroppedPart, isStillMissed } from '../store/dropped-parts.js';
import type { Store } from '../store/store.js';
import type { IngestGate } from './ingest-gate.js';
import type { MemoryBudget } from './memory-budget.js';
import type { Platform } from './platform.js';
import { type Readiness, readinessOf } from './readiness.js';
import type { Shards } from './shards.js';
import { serviceStatus } from './status.js';
import { clockNote, type TrustedTime } from './trusted-time.js';
import type { TopicReading } from './whole-answers.js';

export interface SelfReportPorts {
  readonly config: Config;
  readonly platform: Platform;
  readonly store: Store;
  readonly shards: Shards;
  readonly topicReadings: () => readonly TopicReading[];
  /** null: this process answers alone. */
  readonly cluster: Cluster | null;
  readonly gaps: Gaps;
  readonly gate: IngestGate;
  readonly time: TrustedTime;
  readonly deadLetterSamples: DeadLetterSamples;
  readonly sourceStatus: () => LogSourceStatus;
  readonly memory: MemoryBudget;
  /** null when it is off. */
  readonly resultCache: ResultCache | null;
  readonly stopping: () => boolean;
}

export class SelfReport {
  readonly #ports: SelfReportPorts;
  /** What repairs have dropped. */
  readonly #dropped: readonly DroppedPart[];

  constructor(ports: SelfReportPorts) {
    this.#ports = ports;
    this.#dropped = ports.store.dropped();
  }

  readiness(): Readiness {
    return readinessOf(this.#ports, this.#notes());
  }

  status(nowUs: number): ServiceStatus {
    return serviceStatus(this.#ports, this.readiness(), nowUs);
  }

  /** What repairs have dropped that answers may still lack. */
  stillMissed(): readonly DroppedPart[] {
    const nowUs = this.#ports.platform.clock.nowUs();
    return this.#dropped.filter((part) => isStillMissed(part, nowUs));
  }

  #notes(): string[] {
    const { nowUs, monotonicUs } = this.#ports.platform.clock;
    const doubtUs = this.#ports.time.doubtUs(nowUs(), monotonicUs());
    const clusterNote = this.#ports.cluster?.peers.problem ?? null;
    return [
      ...(clusterNote === null ? [] : [clusterNote]),
      ...this.stillMissed().map(({ what }) => `dropped by a repair: ${what}`),
      ...(doubtUs === 0 ? [] : [clockNote(doubtUs)]),
    ];
  }
}
