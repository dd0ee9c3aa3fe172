/** What the query API needs where several processes answer together: what other members have of an answer. */

import type {
  AnsweringShards,
  CachedEndpoint,
  CachedQuery,
  LiveEndpoint,
  LiveQuery,
} from '../../endpoints/endpoint.js';
import type { AnswerState, DroppedSpan } from '../ports.js';

export interface ScatterCall {
  readonly topic: string;
  readonly endpoint: Pick<CachedEndpoint | LiveEndpoint, 'name' | 'slowestMs' | 'projectOf'>;
  readonly query: Omit<CachedQuery, 'merge'> | Omit<LiveQuery, 'answer' | 'answerWith'>;
  readonly parameters: unknown;
  /** The same parameters as others parse them. */
  readonly queryString: string;
  readonly nowUs: number;
}

export interface Gathered {
  /**
   * How old what comes of it is by now. To be asked when the answer is ready: throws what `assertHere` throws, and
   * Unavailable for what has become too old.
   */
  state(): AnswerState;
  /** Throws a PartitionsChanged once this process does not have these shards any more: reading them fails. */
  assertHere(): void;
  /** Of this process, to be collected from. */
  readonly shards: AnsweringShards;
  /** Partial answers of other members. */
  readonly others: readonly unknown[];
  /** What repairs of the others have dropped of it. */
  readonly dropped: readonly DroppedSpan[];
  /** All partial answers, to be merged in the turn in which they are taken. */
  partials(): readonly unknown[];
  /** To be called where what `others` take is counted elsewhere from now on. */
  uncount(): void;
  /** To be called when nothing of it is needed any more: the memory of `others` is used again. */
  release(): void;
}

export interface ScatterPort {
  /** Rejects with what a query is refused for. */
  gather(call: ScatterCall): Promise<Gathered>;
}
