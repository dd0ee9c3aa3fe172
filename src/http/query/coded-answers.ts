/** Answers in the form that a client takes: as they are, or packed with gzip. */

import type { Holding, LiveAnswer } from '../../endpoints/endpoint.js';
import { JSON_CONTENT_TYPE } from '../errors.js';
import { GZIP_LEVEL_ONCE } from '../limits.js';
import type { Body } from '../server/body.js';
import type { HeaderLine, HttpAnswer, HttpRequest } from '../server/server.js';
import { acceptsGzip, Compressor } from './compression.js';

const VARY_BY_CODING: HeaderLine = ['Vary', 'Accept-Encoding'];

export type Answer = HttpAnswer | Promise<HttpAnswer>;
type Extras = Pick<HttpAnswer, 'release' | 'cacheOutcome'>;

export interface CodingOptions extends Extras {
  /** The packed form, where it is there or is to be kept. */
  readonly packed?: LiveAnswer['packed'];
  /** Of gzip; that of what is sent once where it is left out. */
  readonly level?: number;
}

export class CodedAnswers {
  readonly #compressor = new Compressor();

  /** `release` is called when the body has done its service, whichever form of it is sent. */
  of(
    request: HttpRequest,
    body: Uint8Array,
    headers: readonly HeaderLine[],
    { packed: known, level = GZIP_LEVEL_ONCE, release, cacheOutcome }: CodingOptions = {},
  ): Answer {
    const plain = () => plainAnswer(body, headers, { release, cacheOutcome });
    if (!takesGzip(request)) return plain();
    if (known !== undefined && known.bytes !== null)
      return packedAnswer(known.bytes, headers, { release, cacheOutcome });
    const packing = this.#compressor.tryGzip(body, level);
    if (packing === null) return plain();
    return packing.then((packed) => {
      release?.();
      known?.keep(packed);
      return packedAnswer(packed, headers, { cacheOutcome });
    });
  }

  /** `holding` counts the bytes of both forms; null: it is sent as it is. */
  ofPieces(
    request: HttpRequest,
    pieces: readonly Uint8Array[],
    headers: readonly HeaderLine[],
    holding: Holding | null,
    release: () => void,
  ): Answer {
    if (holding === null || !takesGzip(request)) return plainAnswer(pieces, headers, { release });
    return this.#compressor.tryGzipPieces(pieces, GZIP_LEVEL_ONCE, holding).then(
      (packed) =>
        packed === null
          ? plainAnswer(pieces, headers, { release })
          : packedAnswer(packed, headers, { release }),
      (error) => {
        release();
        throw error;
      },
    );
  }
}

function takesGzip(request: HttpRequest): boolean {
  return acceptsGzip(request.headers.get('accept-encoding'));
}

export function plainAnswer(
  body: Body,
  headers: readonly HeaderLine[],
  { release, cacheOutcome }: Extras = {},
): HttpAnswer {
  return {
    status: 200,
    headers: [JSON_CONTENT_TYPE, VARY_BY_CODING, ...headers],
    body,
    close: false,
    release,
    cacheOutcome,
  };
}

function packedAnswer(packed: Body, headers: readonly HeaderLine[], extras: Extras): HttpAnswer {
  return plainAnswer(packed, [['Content-Encoding', 'gzip'], ...headers], extras);
}
