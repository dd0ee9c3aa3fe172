/**
 * Entries that are posted while a service is killed, and the model's and the service's answers about them.
 */

import type { Random } from '../../src/demo/random.js';
import { type ChildService, TEST_KEY } from '../child-service.js';
import { Model } from '../model/model.js';
import { decodeEdgeNaively, decodeRelayNaively } from '../model/naive-decoder.js';

const SOURCES = { edge: 'cloudflare.logs.prod', relay: 'deno-relay-logs' } as const;
/** Within the seven days that usage and statistics count, whatever the hour. */
const OLDEST_MS = 6 * 24 * 3_600_000;

/** One POST, to a project of its own, of so few entries that `logs.all` shows them all. */
export interface Post {
  readonly kind: keyof typeof SOURCES;
  readonly project: string;
  readonly entries: readonly string[];
  /** `unknown` when the service was killed before it answered: then it counts whole or not at all. */
  state: 'stored' | 'absent' | 'unknown';
}

export class PostedEntries {
  readonly posts: Post[] = [];
  readonly #random: Random;
  readonly #name: string;
  /** Of all entries, and of each project's: a campaign has tens of thousands of them. */
  readonly #model = new Model();
  readonly #ofProjects = new Map<string, Model>();

  constructor(random: Random, name: string) {
    this.#random = random;
    this.#name = name;
  }

  draw(): Post {
    const random = this.#random;
    const project = `${this.#name}${this.posts.length}`;
    const timestampUs = (Date.now() - (random.chance(0.3) ? 0 : random.below(OLDEST_MS))) * 1_000;
    const kind = random.chance(0.8) ? 'edge' : 'relay';
    const entries = Array.from({ length: random.between(1, 60) }, (_, i) => {
      const entry =
        kind === 'edge'
          ? edgeEntry(random, `${project}-${i}`, project)
          : relayEntry(random, `${project}-${i}`, project);
      return JSON.stringify({ timestamp: timestampUs, ...entry });
    });
    const post: Post = { kind, project, entries, state: 'unknown' };
    this.posts.push(post);
    return post;
  }

  /** POSTs of which nobody knows whether they were stored: they may be sent again. */
  get unknown(): Post[] {
    return this.posts.filter(({ state }) => state === 'unknown');
  }

  /**
   * Resolves once the service has it, also when it is sent again; rejects when the service is gone before.
   */
  async send({ url }: ChildService, post: Post): Promise<void> {
    if (post.state === 'absent') post.state = 'unknown';
    const response = await fetch(`${url}/api/logs?source_name=${SOURCES[post.kind]}`, {
      method: 'POST',
      headers: {
        'X-API-KEY': TEST_KEY,
        'Content-Type': 'application/json',
        'Idempotency-Key': post.project,
      },
      body: `[${post.entries.join()}]`,
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`POST answered ${response.status}: ${text}`);
    this.#settle(post, true);
  }

  /**
   * Compares what a service answers with the model: all counts, and the rows and statistics of the posts
   * given.
   */
  async check(service: ChildService, posts: readonly Post[]): Promise<string | null> {
    for (const post of posts) {
      const found = await this.#found(service, post);
      if (post.state === 'unknown') this.#settle(post, found.length > 0);
      const expected = this.#expected(post);
      if (JSON.stringify(found) !== JSON.stringify(expected)) {
        const text = (rows: unknown[]): string => `${rows.length} rows ${JSON.stringify(rows).slice(0, 500)}`;
        return `${post.kind} ${post.project}, ${post.state}, is ${text(found)}; expected ${text(expected)}`;
      }
    }
    const counts = await ask(service, `usage.api-counts?project=${this.#name}&interval=daily`);
    const expected = this.#model
      .apiCounts({ expression: this.#name, interval: 'daily' }, Date.now() * 1_000)
      .map(({ counts: [rest, storage] }) => ({ rest, storage }));
    const found = counts.map(({ total_rest_requests: rest, total_storage_requests: storage }) => {
      return { rest, storage };
    });
    const [expectedText, foundText] = [JSON.stringify(expected), JSON.stringify(found)];
    return foundText === expectedText ? null : `counts are ${foundText}; expected ${expectedText}`;
  }

  #settle(post: Post, isStored: boolean): void {
    // Sent again: it stands in the model.
    if (post.state === 'stored') return;
    post.state = isStored ? 'stored' : 'absent';
    if (!isStored) return;
    const nowUs = Date.now() * 1_000;
    const models = [this.#model, new Model()];
    this.#ofProjects.set(post.project, models[1]);
    for (const [offset, entry] of post.entries.entries()) {
      const record = {
        topic: 't',
        partition: 0,
        offset,
        timestampMs: 0,
        value: Buffer.from(entry),
        projectTier: null,
      };
      if (post.kind === 'edge') {
        for (const element of decodeEdgeNaively(record, nowUs))
          if ('entry' in element) for (const model of models) model.applyEdge(element.entry);
      } else {
        for (const element of decodeRelayNaively(record, nowUs))
          if ('entry' in element) for (const model of models) model.applyRelay(element.entry);
      }
    }
  }

  async #found(service: ChildService, { kind, project }: Post): Promise<unknown[]> {
    if (kind === 'edge') return await ask(service, `logs.all?project=${project}&project_tier=ENTERPRISE`);
    const buckets = await ask(service, `functions.invocation-stats?project=${project}&interval=7day`);
    return buckets.map((row) => [
      row.timestamp,
      row.count,
      row.error_count,
      row.min_execution_time,
      row.max_execution_time,
    ]);
  }

  #expected({ kind, project }: Post): unknown[] {
    const nowUs = Date.now() * 1_000;
    const model = this.#ofProjects.get(project) ?? new Model();
    if (kind === 'edge') {
      const rows = model.logs({ project, tier: 'ENTERPRISE', afterUs: null, untilUs: null }, nowUs);
      return rows.map((row) => JSON.parse(row.toString()));
    }
    return model
      .invocationStats({ project, functionId: null, interval: '7day' }, nowUs)
      .map(({ startUs, count, errorCount, sortedMs }) => [
        startUs,
        count,
        errorCount,
        sortedMs[0],
        sortedMs.at(-1),
      ]);
  }
}

function edgeEntry(random: Random, id: string, project: string): Record<string, unknown> {
  const area = random.pick(['rest', 'storage']);
  return {
    id,
    project,
    event_message: random.hex(200),
    metadata: { request: { url: `https://${project}.example.co/${area}/v1/t` } },
  };
}

function relayEntry(random: Random, id: string, project: string): Record<string, unknown> {
  return {
    id,
    metadata: {
      project_ref: project,
      function_id: 'f',
      execution_time_ms: random.below(1_000),
      response: { status_code: random.pick([200, 500]) },
    },
  };
}

async function ask(service: ChildService, question: string): Promise<Record<string, unknown>[]> {
  const response = await fetch(`${service.url}/api/endpoints/query/${question}`, {
    headers: { 'X-API-KEY': TEST_KEY },
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${question} answered ${response.status}: ${text}`);
  return (JSON.parse(text) as { result: Record<string, unknown>[] }).result;
}
