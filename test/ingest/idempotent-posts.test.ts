/**
 * POSTs with an Idempotency-Key over the real store: sent again they count once, and are answered as the
 * first time.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { EmbeddedLog } from '../../ingest/embedded-log/embedded-log.js';
import { Remembered } from '../../ingest/embedded-log/remembered.js';
import { POST_MEMORY, type RememberedPost } from '../../ingest/embedded-log/remembered-posts.js';
import { POST_MEMORY_BYTES, POST_MEMORY_COUNT, POST_MEMORY_MS } from '../../ingest/limits.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { NOW_US } from '../decode/fixtures.js';
import { RecordingSink } from '../kafka/recording-sink.js';

const root = mkdtempSync(join(tmpdir(), 'logring-idempotent-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const LINES = 'application/x-ndjson';

class Rig {
  readonly sink = new RecordingSink();
  nowUs = NOW_US;
  /** By how much the clock is ahead of what is known; negative: behind. */
  aheadUs = 0;
  readonly #name: string;
  #store!: Store;
  #log!: EmbeddedLog;

  constructor(name: string) {
    this.#name = name;
  }

  async open(): Promise<this> {
    this.#store = await Store.open(join(root, this.#name), 1 << 20);
    this.#log = new EmbeddedLog({
      log: new LogTable(this.#store),
      edgeTopic: 'edge',
      relayTopic: 'relay',
      nowUs: () => this.nowUs,
      time: () => {
        const known = this.nowUs - this.aheadUs;
        return {
          earliestMs: Math.min(this.nowUs, known) / 1000,
          latestMs: Math.max(this.nowUs, known) / 1000,
        };
      },
      commit: async () => undefined,
      yieldTurn: () => new Promise((resolve) => setImmediate(resolve)),
      onFatal: (error) => {
        throw error;
      },
    });
    await this.#log.start(this.sink);
    return this;
  }

  /** `2 taken, 1 missing-project`, or the kind of outcome. */
  async post(idempotencyKey: string, body: string, source = 'edge'): Promise<string> {
    const outcome = await this.#log.append(source, Buffer.from(body), LINES, { idempotencyKey });
    if (outcome.kind !== 'stored') return outcome.kind;
    return [`${outcome.accepted} taken`, ...outcome.rejected.map((r) => `${r.index} ${r.reason}`)].join(', ');
  }

  async close(): Promise<void> {
    await this.#log.stop();
    await this.#store.close();
  }

  /** The ids of the entries that the sink was given. */
  ids(topic = 'edge'): string[] {
    return (this.sink.records.get(`${topic}/0`) ?? []).flatMap(({ value }) => {
      const text = String(Buffer.from(value!));
      return [...text.matchAll(/"id":"(.*?)"/g)].map(([, id]) => id);
    });
  }
}

const entry = (id: string) => JSON.stringify({ id, project: 'p' });
const BODY = `${entry('a')}\n{}\n${entry('b')}`;
const ANSWER = '2 taken, 1 missing-project';

test('a POST that is sent again counts once and is answered as the first time, also after a restart', async () => {
  const rig = await new Rig('again').open();
  expect(await rig.post('k', BODY)).toBe(ANSWER);
  expect(await rig.post('k', BODY)).toBe(ANSWER);
  expect(await rig.post('k', `${BODY} `)).toBe('key-reused');
  expect(await rig.post('K', entry('c'))).toBe('1 taken');
  // Each source has keys of its own.
  expect(await rig.post('k', '{"id":"r","metadata":{"project_ref":"p"}}', 'relay')).toBe('1 taken');
  await rig.close();
  await rig.open();
  expect(await rig.post('k', BODY)).toBe(ANSWER);
  expect(await rig.post('k', entry('c'))).toBe('key-reused');
  await rig.close();
  expect(rig.ids()).toEqual(['a', 'b', 'c']);
  expect(rig.ids('relay')).toEqual(['r']);
});

test('the same POSTs on their way at once: one counts, all are answered alike', async () => {
  const rig = await new Rig('at-once').open();
  const bodies = [...Array.from({ length: 20 }, () => BODY), entry('other')];
  const outcomes = await Promise.all(bodies.map((body) => rig.post('k', body)));
  expect(outcomes.filter((outcome) => outcome === ANSWER).length).toBe(20);
  expect(outcomes.at(-1)).toBe('key-reused');
  await rig.close();
  expect(rig.ids()).toEqual(['a', 'b']);
});

test('what was refused is not remembered; a POST without entries is', async () => {
  const rig = await new Rig('refused').open();
  expect(await rig.post('k', 'no json')).toBe('not-json');
  expect(await rig.post('k', '')).toBe('not-json');
  expect(await rig.post('k', BODY)).toBe(ANSWER);
  expect(await rig.post('empty', '{"batch":[]}')).toBe(await rig.post('empty', '{"batch":[]}'));
  await rig.close();
});

test('after a day a key is forgotten, in the store too', async () => {
  const rig = await new Rig('day').open();
  const dayUs = POST_MEMORY_MS * 1000;
  expect(await rig.post('k', BODY)).toBe(ANSWER);
  rig.nowUs += dayUs - 1000;
  expect(await rig.post('k', entry('c'))).toBe('key-reused');
  rig.nowUs += 1000;
  expect(await rig.post('k', entry('c'))).toBe('1 taken');
  rig.nowUs += dayUs;
  expect(await rig.post('next', entry('d'))).toBe('1 taken');
  await rig.close();
  const store = await Store.open(join(root, 'day'), 1 << 20);
  expect([...new LogTable(store).posts('edge')].length).toBe(1);
  await store.close();
});

test('a clock that steps ahead makes nothing forgotten before it is trusted; nor does one that was behind', async () => {
  const rig = await new Rig('steps').open();
  const dayUs = POST_MEMORY_MS * 1000;
  const step = (byUs: number): void => {
    rig.nowUs += byUs;
    rig.aheadUs += byUs;
  };
  expect(await rig.post('k', BODY)).toBe(ANSWER);
  step(2 * dayUs);
  expect(await rig.post('k', BODY)).toBe(ANSWER);
  expect(await rig.post('next', entry('c'))).toBe('1 taken');
  expect(await rig.post('k', entry('d'))).toBe('key-reused');
  step(-4 * dayUs);
  expect(await rig.post('behind', entry('d'))).toBe('1 taken');
  step(2 * dayUs);
  expect(await rig.post('behind', entry('d'))).toBe('1 taken');
  // Trusted.
  rig.nowUs += dayUs;
  expect(await rig.post('k', entry('e'))).toBe('1 taken');
  await rig.close();
  expect(rig.ids()).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('so many are remembered and no more, by their number and by what was rejected: the oldest go first', () => {
  const post = (postedMs: number, rejectedCount = 0): RememberedPost => {
    const rejected = Array.from({ length: rejectedCount }, (_, index) => ({
      index,
      reason: 'not-json' as const,
    }));
    return { postedMs, bodyDigest: 'd', accepted: 1, rejected };
  };
  const posts = new Remembered(POST_MEMORY, [
    ['late', post(2)],
    ['early', post(1)],
  ]);
  const add = (key: string, added: RememberedPost) => {
    const changes = new Map<string, RememberedPost | null>();
    posts.change(changes, key, added, 0);
    posts.apply(changes);
    return [...changes].filter(([, change]) => change === null).map(([forgotten]) => forgotten);
  };
  for (let i = 2; i < POST_MEMORY_COUNT; i++) expect(add(`k${i}`, post(i))).toEqual([]);
  expect(add('next', post(3))).toEqual(['early']);
  expect(add('again', post(3))).toEqual(['late']);
  const forgotten = add('large', post(3, 131_072));
  expect(forgotten.length).toBeGreaterThan(0);
  expect(forgotten[0]).toBe('k2');
  expect(posts.heldBytes).toBeLessThanOrEqual(POST_MEMORY_BYTES);
  expect(posts.find('large', new Map(), 3)?.rejected.length).toBe(131_072);
  expect(add('large2', post(4, 131_072))).toContain('large');
  expect(posts.heldBytes).toBeLessThanOrEqual(POST_MEMORY_BYTES);
});
