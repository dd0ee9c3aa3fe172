/** Answers that other members have a part in: gathered, merged, and how each of them stands. */

import type {
  CachedEndpoint,
  CachedQuery,
  Endpoint,
  LiveAnswer,
  LiveQuery,
  LogName,
} from '../../endpoints/endpoint.js';
import { PartitionsChanged } from '../../endpoints/refusal.js';
import type { AnswerState, DroppedPort, DroppedSpan } from '../ports.js';
import type { Gathered, ScatterPort } from './scatter-port.js';

export interface SharedAnswersPorts {
  readonly port: ScatterPort;
  readonly topicOf: (log: LogName) => string;
}

interface Asked {
  readonly parameters: unknown;
  /** As `encode` of the endpoint's parameters has them. */
  readonly queryString: string;
  readonly nowUs: number;
}

export interface SharedLiveAnswer {
  readonly answer: LiveAnswer;
  readonly state: AnswerState;
  /** What repairs of other members have dropped. */
  readonly dropped: readonly DroppedSpan[];
}

/** How often it is gathered where what it is made of changes before it is merged: once more is enough as a rule. */
const MERGE_TRIES = 2;

export class SharedAnswers {
  readonly #ports: SharedAnswersPorts;
  /** How bodies stand that are not fresh. */
  readonly #unfresh = new WeakMap<Uint8Array, AnswerState>();
  readonly #dropped = new WeakMap<Uint8Array, readonly DroppedSpan[]>();

  constructor(ports: SharedAnswersPorts) {
    this.#ports = ports;
  }

  /** undefined for a body that is fresh. */
  unfresh(body: Uint8Array): AnswerState | undefined {
    return this.#unfresh.get(body);
  }

  droppedOf(body: Uint8Array): readonly DroppedSpan[] {
    return this.#dropped.get(body) ?? [];
  }

  /** Rejects with what a query is refused for. */
  async body(
    { endpoint, query }: { readonly endpoint: CachedEndpoint; readonly query: CachedQuery },
    asked: Asked,
  ): Promise<Uint8Array> {
    for (let tries = 1; ; tries++) {
      const gathered = await this.#gather(endpoint, query, asked);
      try {
        const body = query.merge(gathered.partials(), asked.parameters);
        const state = gathered.state();
        if (state.kind !== 'fresh') this.#unfresh.set(body, state);
        if (gathered.dropped.length > 0) this.#dropped.set(body, gathered.dropped);
        return body;
      } catch (error) {
        if (!(error instanceof PartitionsChanged) || tries === MERGE_TRIES) throw error;
      } finally {
        gathered.release();
      }
    }
  }

  /** Rejects with what a query is refused for. */
  async live(endpoint: Endpoint, query: LiveQuery, asked: Asked): Promise<SharedLiveAnswer> {
    const gathered = await this.#gather(endpoint, query, asked);
    try {
      const { others, shards, dropped } = gathered;
      // What the rows of a large answer take is counted with it.
      gathered.uncount();
      const answering = query.answerWith(others, asked.parameters, asked.nowUs, shards);
      const answer = answering instanceof Promise ? await whereHere(answering, gathered) : answering;
      try {
        const window = answer.window();
        return { answer: { ...answer, window: () => window }, state: gathered.state(), dropped };
      } catch (error) {
        answer.release();
        throw error;
      }
    } finally {
      gathered.release();
    }
  }

  #gather(endpoint: Endpoint, query: CachedQuery | LiveQuery, asked: Asked): Promise<Gathered> {
    const { port, topicOf } = this.#ports;
    const { parameters, queryString, nowUs } = asked;
    return port.gather({ endpoint, query, topic: topicOf(endpoint.log), parameters, queryString, nowUs });
  }
}

/** Reading a shard that went meanwhile fails: that is neither damage nor a bug. */
function whereHere(answering: Promise<LiveAnswer>, gathered: Gathered): Promise<LiveAnswer> {
  return answering.catch((error: unknown) => {
    gathered.assertHere();
    throw error;
  });
}

/** Where others have dropped something too; null when nobody has. */
export function droppedWith(own: DroppedPort | null, others: readonly DroppedSpan[]): DroppedPort | null {
  if (others.length === 0) return own;
  return (window) => [
    ...(own?.(window) ?? []),
    ...others.filter(({ startUs, endUs }) => endUs > window.startUs && startUs <= window.endUs),
  ];
}
