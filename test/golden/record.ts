/** Draws a run and records the answers of this code: `node dist/test/golden/record.js`. */

import { OddRecords, TIME_SHAPES } from '../../bench/generator/odd-records.js';
import { createTraffic } from '../../bench/generator/traffic.js';
import { Random } from '../../src/demo/random.js';
import { isoOf } from '../oracle/questions.js';
import { type Phase, playRun, writeRun } from './recorded-run.js';

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** 2026-11-21T07:00:00Z */
const START_US = 1_795_244_400 * SECOND;
/** From each phase to the next; before those that are 0 the service starts again. */
const STEPS_US = [
  0,
  3 * MINUTE + 7,
  0,
  2 * HOUR + 13 * SECOND + 1,
  26 * HOUR,
  0,
  5 * DAY + 17 * MINUTE,
  SECOND,
];
const ODD_ENTRIES = 400;
const USUAL_ENTRIES = 40;
/** Enough in one bucket that its values become a digest. */
const CROWD_ENTRIES = 700;
const QUESTIONS = 1_250;
const PROJECTS = ['abcproject', 'abc', 'xyz.project', 'äß-project', 'q'];
const FUNCTION_IDS = ['f-1', 'f-2', 'f-3', 'abcproject'];
const TIERS = ['FREE', 'PRO', 'PAYG', 'ENTERPRISE', 'free', ''];
const AGES_US = [SECOND, MINUTE, HOUR, DAY, 20 * DAY];

const random = new Random(17);
const usual = createTraffic({
  seed: 17,
  projectCount: 3,
  tierOf: (index) => ['FREE', 'PRO', 'ENTERPRISE'][index],
});
const odd = TIME_SHAPES.map(
  (timeShape) =>
    new OddRecords(random, { projects: PROJECTS, functionIds: FUNCTION_IDS, timeShape, oddShare: 0.4 }),
);

function drawTimeUs(nowUs: number): number {
  return nowUs - Math.floor(-Math.log(1 - random.float()) * random.pick(AGES_US));
}

function drawPhase(nowUs: number, restarts: boolean): Phase {
  const lines = { edge: [] as string[], relay: [] as string[] };
  for (const kind of ['edge', 'relay'] as const) {
    for (let i = 0; i < ODD_ENTRIES; i++) lines[kind].push(random.pick(odd)[kind](drawTimeUs(nowUs)));
    for (let i = 0; i < USUAL_ENTRIES; i++) lines[kind].push(usual[kind](drawTimeUs(nowUs)));
  }
  for (let i = 0; i < CROWD_ENTRIES; i++) lines.relay.push(odd[0].relay(nowUs - random.below(2 * MINUTE)));
  return {
    nowUs,
    restarts,
    edge: lines.edge.join('\n'),
    relay: lines.relay.join('\n'),
    questions: Array.from({ length: QUESTIONS }, () => drawQuestion(nowUs)),
    hashes: [],
  };
}

function drawQuestion(nowUs: number): string {
  const { ref, functions } = random.pick(usual.projects);
  const isOdd = random.chance(0.7);
  const project = isOdd ? random.pick(PROJECTS) : ref;
  const bound = () => isoOf(drawTimeUs(nowUs));
  switch (random.below(3)) {
    case 0:
      return asked('logs.all', {
        project,
        project_tier: random.pick(TIERS),
        ...(random.chance(0.4) ? { iso_timestamp_start: bound() } : {}),
        ...(random.chance(0.4) ? { iso_timestamp_end: bound() } : {}),
      });
    case 1:
      return asked('functions.invocation-stats', {
        project,
        interval: random.pick(['5min', '15min', '1hr', '1day', '7day', '1HR', '']),
        ...(random.chance(0.5) ? { function_id: isOdd ? random.pick(FUNCTION_IDS) : functions[0].id } : {}),
      });
    default:
      return asked('usage.api-counts', {
        project: random.pick([
          project,
          `^https?://${ref}[.]`,
          '/(?:rest|auth)/v1/',
          'realtime',
          'nothing.so',
        ]),
        interval: random.pick(['minutely', 'hourly', 'daily']),
      });
  }
}

function asked(endpoint: string, parameters: Record<string, string>): string {
  return `${endpoint}?${new URLSearchParams(parameters)}`;
}

let nowUs = START_US;
const phases = STEPS_US.map((stepUs, index) => {
  nowUs += stepUs;
  return drawPhase(nowUs, stepUs === 0 && index > 0);
});
writeRun(await playRun(phases));
