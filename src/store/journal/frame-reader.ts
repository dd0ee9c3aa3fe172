/** Reads a file of frames from its beginning: each that is whole, and where one is not. */

import type { Disk } from '../disk/disk.js';
import { readError } from '../disk/read-error.js';
import { STRETCH_BYTES } from '../limits.js';
import { FileWindow } from './file-window.js';
import { decodeHeader, FRAME_HEADER_BYTES, FRAME_MAGIC, isWholeBody, type ReadHeader } from './frame.js';

export interface WholeFrame {
  readonly header: ReadHeader;
  /** Where its body begins in the file. */
  readonly bodyAt: number;
  /** Valid until the next frame is read. */
  readonly body: Uint8Array;
}

/** Bytes that are no frame, from there to the end of the file or to the next whole one. */
export interface BrokenStretch {
  readonly brokenAt: number;
  /** null: to the end. */
  readonly nextAt: number | null;
  /** The frame that it begins with, when its header is whole and its body is not. */
  readonly part: WholeFrame | null;
  /** Why nothing can be read from there; null where bytes were read. */
  readonly refused: string | null;
}

const SEARCH_BYTES = 1 << 20;

/** `name`: what the checksums of the file's frames cover beside their bytes. */
export function* readFrames(disk: Disk, path: string, name: string): Generator<WholeFrame | BrokenStretch> {
  const window = new FileWindow(disk, path, STRETCH_BYTES);
  try {
    const byteCount = disk.byteCount(path) ?? 0;
    for (let at = 0; at < byteCount; ) {
      const frame = foundAt(window, path, name, at, byteCount);
      yield frame;
      if (!('brokenAt' in frame)) at = frame.bodyAt + frame.body.length;
      else if (frame.nextAt === null) return;
      else at = frame.nextAt;
    }
  } finally {
    window.close();
  }
}

/** Throws the system's error, but where it is of that file. */
function foundAt(
  window: FileWindow,
  path: string,
  name: string,
  at: number,
  byteCount: number,
): WholeFrame | BrokenStretch {
  try {
    const frame = frameAt(window, name, at, byteCount);
    if (frame?.isWhole) return frame;
    const part = frame && { ...frame, body: frame.body.slice() };
    // Of a header that is whole, what it says its body is holds no frame, whatever somebody sent.
    const from = frame === null ? at + 1 : frame.bodyAt + frame.header.bodyBytes;
    return { brokenAt: at, nextAt: nextFrame(window, name, from, byteCount), part, refused: null };
  } catch (error) {
    return { brokenAt: at, nextAt: null, part: null, refused: readError(path, error).message };
  }
}

/** null where no header is. */
function frameAt(
  window: FileWindow,
  name: string,
  at: number,
  byteCount: number,
): (WholeFrame & { readonly isWhole: boolean }) | null {
  const header = decodeHeader(name, window.read(at, FRAME_HEADER_BYTES));
  if (header === null) return null;
  const bodyAt = at + FRAME_HEADER_BYTES;
  const body = window.read(bodyAt, Math.min(header.bodyBytes, byteCount - bodyAt));
  return { header, bodyAt, body, isWhole: isWholeBody(header, body) };
}

function nextFrame(window: FileWindow, name: string, from: number, byteCount: number): number | null {
  for (let at = from; at < byteCount; at += SEARCH_BYTES) {
    // Each stretch reaches into the next by less than a magic.
    const length = Math.min(SEARCH_BYTES + FRAME_MAGIC.length - 1, byteCount - at);
    for (const offset of offsetsOfMagic(window.read(at, length))) {
      if (frameAt(window, name, at + offset, byteCount)?.isWhole) return at + offset;
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
