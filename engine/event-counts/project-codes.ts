/** A number for each project that any slot has, so that slots hold four bytes in place of a name. */

import { MAP_PLACE_BYTES, nameBytes, sharedName } from '../names.js';

/** Beside the name and its place in the map: places in two lists. */
const CODE_BYTES = 16;

export class ProjectCodes {
  readonly #codes = new Map<string, number>();
  readonly #names: (string | null)[] = [];
  readonly #slotCounts: number[] = [];
  readonly #free: number[] = [];
  #heldBytes = 0;

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get count(): number {
    return this.#codes.size;
  }

  /** -1 when no slot has it. */
  find(project: string): number {
    return this.#codes.get(project) ?? -1;
  }

  /** Made if it does not exist; it is free again once slots that held it have all released it. */
  codeOf(project: string): number {
    const known = this.#codes.get(project);
    if (known !== undefined) return known;
    const name = sharedName(project);
    const code = this.#free.pop() ?? this.#names.length;
    this.#names[code] = name;
    this.#slotCounts[code] = 0;
    this.#codes.set(name, code);
    this.#heldBytes += bytesOf(name);
    return code;
  }

  nameOf(code: number): string {
    return this.#names[code]!;
  }

  hold(code: number): void {
    this.#slotCounts[code] += 1;
  }

  release(code: number): void {
    this.#slotCounts[code] -= 1;
    if (this.#slotCounts[code] > 0) return;
    const name = this.nameOf(code);
    this.#codes.delete(name);
    this.#names[code] = null;
    this.#free.push(code);
    this.#heldBytes -= bytesOf(name);
  }
}

function bytesOf(name: string): number {
  return nameBytes(name) + MAP_PLACE_BYTES + CODE_BYTES;
}
