/**
 * What the serving thread and the match thread say to each other: the match thread says when it is ready,
 * then it is asked one question at a time, and answers each once.
 */

import type { PartScanRequest, ScanResult } from '../../engine/usage/sealed/part-scan.js';
import type { LocatedFile } from '../store/blocks/stored-blocks.js';
import type { ExpressionErrorKind } from './expression-error.js';

export type MatchRequest =
  | {
      readonly kind: 'urls';
      readonly expression: string;
      /** URLs in UTF-8, one behind the other; none, to ask whether the expression is valid. */
      readonly bytes: Uint8Array<ArrayBuffer>;
      readonly ends: Uint32Array<ArrayBuffer>;
    }
  | {
      readonly kind: 'part';
      readonly expression: string;
      readonly scan: PartScanRequest;
      readonly located: LocatedFile;
      /** How long it may take. */
      readonly targetMs: number;
    };

export type MatchReply =
  | { readonly outcome: 'ready' }
  | {
      readonly outcome: 'matched';
      /** Of URLs one byte each: 1 where it matches. */
      readonly result: Uint8Array<ArrayBuffer> | ScanResult;
      readonly elapsedMs: number;
      /** What the URLs came in, to be filled again; absent after a part. */
      readonly spent?: Uint8Array<ArrayBuffer>;
    }
  | { readonly outcome: 'refused'; readonly kind: ExpressionErrorKind; readonly message: string }
  /** What the store holds can't be read. */
  | { readonly outcome: 'failed'; readonly message: string; readonly isDamage: boolean };
