/** Members of a cluster as users run them, on a real broker: processes with ports, directories and a group each zone. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PartitionFigures, ServiceStatus } from '../../src/console/service-status.js';
import { type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';
import { freePort } from '../kafka/broker/free-port.js';

export interface MemberPlace {
  readonly name: string;
  /** '' for a cluster of one zone. */
  readonly zone: string;
}

export class Members {
  readonly #settings: Record<string, string>;
  readonly #directory = mkdtempSync(join(tmpdir(), 'logring-cluster-'));
  readonly #services = new Map<string, ChildService>();
  /** Each keeps its own, as the others find it there when it is back. */
  readonly #ports = new Map<string, number>();

  /** `settings`: those that all have in common. */
  constructor(settings: Record<string, string>) {
    this.#settings = settings;
  }

  /** Starts one, or starts it again on what it has stored. */
  async start({ name, zone }: MemberPlace, more: Record<string, string> = {}): Promise<ChildService> {
    const port = this.#ports.get(name) ?? (await freePort());
    this.#ports.set(name, port);
    const service = await startChildService({
      LOGRING_CLUSTER_PORT: String(port),
      LOGRING_CLUSTER_KEYS: 'between-members',
      ...this.#settings,
      LOGRING_ZONE: zone,
      LOGRING_DATA_DIR: this.directoryOf(name),
      ...more,
    });
    this.#services.set(name, service);
    return service;
  }

  of(name: string): ChildService {
    return this.#services.get(name)!;
  }

  directoryOf(name: string): string {
    return join(this.#directory, name);
  }

  async untilReady(...names: readonly string[]): Promise<void> {
    let last: unknown = null;
    await eventually(
      async () => {
        const said = await Promise.all(
          names.map(async (name) => {
            const response = await fetch(`${this.of(name).url}/readyz`);
            return { name, status: response.status, body: await response.text() };
          }),
        );
        last = said;
        return said.every(({ status }) => status === 200);
      },
      () => last,
    );
  }

  async ask(name: string, question: string): Promise<Answered> {
    const response = await fetch(`${this.of(name).url}/api/endpoints/query/${question}`, {
      headers: { 'X-API-KEY': TEST_KEY },
    });
    return {
      status: response.status,
      body: await response.text(),
      staleSeconds: response.headers.get('logring-stale-seconds'),
    };
  }

  /** Those that the console offers there, by name. */
  async projects(name: string): Promise<string[]> {
    const response = await fetch(`${this.of(name).url}/api/projects`, { headers: { 'X-API-KEY': TEST_KEY } });
    return ((await response.json()) as { projects: string[] }).projects.sort();
  }

  /** The partitions that a member reads, as `topic/number`. */
  async assigned(name: string): Promise<string[]> {
    const read = await this.#read(name);
    return read.map(({ topic, partition }) => `${topic}/${partition}`);
  }

  /** Records of the partitions that a member reads which it has applied. */
  async readCount(name: string): Promise<number> {
    const read = await this.#read(name);
    return read.reduce((sum, { nextOffset }) => sum + (nextOffset ?? 0), 0);
  }

  /** How far a member has applied each of the partitions that it reads, as `topic/number`. */
  async positions(name: string): Promise<Map<string, number>> {
    const read = await this.#read(name);
    return new Map(
      read.map(({ topic, partition, nextOffset }) => [`${topic}/${partition}`, nextOffset ?? 0]),
    );
  }

  async #read(name: string): Promise<PartitionFigures[]> {
    const response = await fetch(`${this.of(name).url}/api/status`, { headers: { 'X-API-KEY': TEST_KEY } });
    const { partitions } = (await response.json()) as ServiceStatus;
    return partitions.filter(({ isRead }) => isRead);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#services.values()].map((service) => service.kill('SIGKILL')));
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export interface Answered {
  readonly status: number;
  readonly body: string;
  readonly staleSeconds: string | null;
}
