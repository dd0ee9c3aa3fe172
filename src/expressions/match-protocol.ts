/**
 * What the serving thread and the match thread say to each other: the match thread says when it is ready, then it is
 * asked one question at a time, and answers each once.
 */

import type { ExpressionErrorKind } from './expression-error.js';

export interface MatchRequest {
  readonly expression: string;
  /** URLs in UTF-8, one behind the other; none, to ask whether the expression is valid. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly ends: Uint32Array<ArrayBuffer>;
}

export type MatchReply =
  | { readonly outcome: 'ready' }
  | {
      readonly outcome: 'matched';
      /** One byte a URL: 1 where it matches. */
      readonly verdicts: Uint8Array<ArrayBuffer>;
      readonly elapsedMs: number;
    }
  | { readonly outcome: 'refused'; readonly kind: ExpressionErrorKind; readonly message: string };
