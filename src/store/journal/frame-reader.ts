/** Reads a file of frames from its beginning: each that is whole, and where one is not. */

import type { Disk } from '../disk/disk.js';
import { STRETCH_BYTES } from '../limits.js';
import { decodeHeader, FRAME_HEADER_BYTES, FRAME_MAGIC, isWholeBody, type ReadHeader } from './frame.js';
import { ReadableFile } from './readable-file.js';

export interface WholeFrame {
  readonly header: ReadHeader;
  /** Where its body begins in the file. */
  readonly bodyAt: number;
  /** Valid until the next frame is read. */
  readonly body: Uint8Array;
}

/** Bytes that are no frame, from there to the end of the file or to the next one. */
export interface BrokenStretch {
  readonly brokenAt: number;
  /** null: to the end. What a whole header says its body is ends at the next one, whatever the body of that is. */
  readonly nextAt: number | null;
  /** The frame that it begins with, when its header is whole and its body is not. */
  readonly part: WholeFrame | null;
  /** Why some of it can't be read; null where all of it was. */
  readonly refused: string | null;
}

const SEARCH_BYTES = 1 << 20;

/** `name`: what the checksums of the file's frames cover beside their bytes. */
export function* readFrames(disk: Disk, path: string, name: string): Generator<WholeFrame | BrokenStretch> {
  const file = new ReadableFile(disk, path, STRETCH_BYTES);
  try {
    for (let at = 0; at < file.byteCount; ) {
      const frame = foundAt(file, name, at);
      yield frame;
      if (!('brokenAt' in frame)) at = frame.bodyAt + frame.body.length;
      else if (frame.nextAt === null) return;
      else at = frame.nextAt;
    }
  } finally {
    file.close();
  }
}

function foundAt(file: ReadableFile, name: string, at: number): WholeFrame | BrokenStretch {
  const frame = frameAt(file, name, at);
  const refused = file.takeRefused();
  if (frame?.isWhole && refused === null) return frame;
  const part = frame && { ...frame, body: frame.body.slice() };
  // Of a header that is whole, what it says its body is holds no frame, whatever somebody sent.
  const from = frame === null ? at + 1 : frame.bodyAt + frame.header.bodyBytes;
  const isNextThere = frame !== null && decodeHeader(name, file.read(from, FRAME_HEADER_BYTES)) !== null;
  const nextAt = isNextThere ? from : nextFrame(file, name, from);
  // Where that can't be read it is not known whether a frame follows.
  const refusedBehind = file.takeRefused();
  return { brokenAt: at, nextAt, part, refused: refused ?? refusedBehind };
}

/** null where no header is. */
function frameAt(
  file: ReadableFile,
  name: string,
  at: number,
): (WholeFrame & { readonly isWhole: boolean }) | null {
  const header = decodeHeader(name, file.read(at, FRAME_HEADER_BYTES));
  if (header === null) return null;
  const bodyAt = at + FRAME_HEADER_BYTES;
  const body = file.read(bodyAt, Math.min(header.bodyBytes, file.byteCount - bodyAt));
  return { header, bodyAt, body, isWhole: isWholeBody(header, body) };
}

function nextFrame(file: ReadableFile, name: string, from: number): number | null {
  for (let at = from; at < file.byteCount; at += SEARCH_BYTES) {
    // Each stretch reaches into the next by less than a magic.
    const length = Math.min(SEARCH_BYTES + FRAME_MAGIC.length - 1, file.byteCount - at);
    for (const offset of offsetsOfMagic(file.read(at, length))) {
      if (frameAt(file, name, at + offset)?.isWhole) return at + offset;
    }
  }
  return null;
}

function offsetsOfMagic(bytes: Uint8Array): number[] {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const offsets: number[] = [];
  for (let at = view.indexOf(FRAME_MAGIC); at !== -1; at = view.indexOf(FRAME_MAGIC, at + 1))
    offsets.push(at);
  return offsets;
}
