/**
 * A process of clients that mean no good: each does one attack after another until told to stop. Started by
 * abuse.ts; takes an AttackOrder, then 'stop'; says 'ready' once its bodies are made, and returns an
 * AttackReport.
 */

import { setPriority } from 'node:os';
import { Random } from '../../src/demo/random.js';
import { wallClockUs } from '../../src/system-clock.js';
import { AttackClient, type Outcomes } from './attack-client.js';
import { BIG_PROJECT, Bodies, manyFunctions, manyNames } from './bodies.js';

export interface AttackOrder {
  readonly url: string;
  readonly seed: number;
  readonly clients: number;
  /** How long a client holds what it holds: connections, answers that it does not read. */
  readonly holdMs: number;
}

export interface AttackReport {
  readonly outcomes: readonly (readonly [outcome: string, count: number])[];
  readonly problems: readonly (readonly [outcome: string, answer: string])[];
}

/** Behind the service and the well-behaved clients, with which it shares two cores. */
const NICENESS = 10;
setPriority(NICENESS);

const EXPRESSIONS = 50;
const QUESTIONS = 200;
const LONG_VALUE_BYTES = 15_000;
const IDLE_CONNECTIONS = 100;

let stopped = false;

type Attack = (client: AttackClient, random: Random) => Promise<void>;

function attacksOf(bodies: Bodies, holdMs: number): Attack[] {
  const many = async (count: number, ask: () => Promise<void>) => {
    for (let i = 0; i < count && !stopped; i++) await ask();
  };
  const newest = { project: BIG_PROJECT, project_tier: 'ENTERPRISE' };
  return [
    (client) => client.post('large', bodies.large),
    (client) => client.post('large packed', bodies.largePacked),
    (client) => client.post('too large', bodies.tooLarge),
    (client, random) => client.post('nested', random.pick(bodies.nested)),
    (client) => client.post('long names', bodies.longNames),
    (client) => client.post('unusable', bodies.unusable),
    (client, random) => client.post('many names', manyNames(random, wallClockUs())),
    (client, random) => client.post('many functions', manyFunctions(random, wallClockUs())),
    (client) => client.breakOff(bodies.large),
    (client) => client.readSlowly('logs.all', newest, holdMs),
    (client) => client.get('big answer', 'logs.all', newest),
    (client) => client.idle(IDLE_CONNECTIONS, holdMs),
    (client, random) =>
      many(EXPRESSIONS, () =>
        client.get('expression', 'usage.api-counts', {
          project: `${random.hex8()}.*${random.hex8()}[a-f]+`,
          interval: 'daily',
        }),
      ),
    (client, random) =>
      many(QUESTIONS, () =>
        client.get('long value', 'functions.invocation-stats', {
          project: 'crowded',
          function_id: random.hex(LONG_VALUE_BYTES),
          interval: '1hr',
        }),
      ),
    (client, random) =>
      many(QUESTIONS, () =>
        client.get('distinct question', 'functions.invocation-stats', {
          project: 'crowded',
          function_id: random.uuid(),
          interval: random.pick(['5min', '1hr', '7day']),
        }),
      ),
  ];
}

async function attack({ url, seed, clients, holdMs }: AttackOrder): Promise<AttackReport> {
  const bodies = new Bodies(seed, wallClockUs());
  process.send?.('ready');
  const attacks = attacksOf(bodies, holdMs);
  const outcomes: Outcomes = new Map();
  const problems = new Map<string, string>();
  await Promise.all(
    Array.from({ length: clients }, async (_, index) => {
      const random = new Random(seed + index);
      const client = new AttackClient(url, outcomes, problems);
      while (!stopped) await random.pick(attacks)(client, random);
      client.close();
    }),
  );
  return { outcomes: [...outcomes], problems: [...problems] };
}

// Ctrl-C is for its starter, which says when to stop.
process.on('SIGINT', () => undefined);

// Its starter is gone: nobody reads a report.
process.once('disconnect', () => process.exit(1));

process.on('message', (message: AttackOrder | 'stop') => {
  if (message === 'stop') {
    stopped = true;
    return;
  }
  attack(message).then(
    (report) => process.send?.(report, () => process.exit(0)),
    (error: unknown) => {
      process.stderr.write(`attackers: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
