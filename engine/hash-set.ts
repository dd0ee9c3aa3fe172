/** A set of hashes, whole numbers of 32 bits but 0, in 6 to 12 bytes each: open addressing, from the hash's place on. */

const LEAST_PLACES = 16;
/** Of the places, how many are taken at most. */
const MOST_TAKEN = 2 / 3;

export class HashSet {
  /** 0: free. */
  #places = new Uint32Array(LEAST_PLACES);
  readonly #seed: number;
  #count = 0;

  /** `seed`: a secret where others choose the hashes, so that they can't choose them for one place. */
  constructor(seed = 0) {
    this.#seed = seed;
  }

  get count(): number {
    return this.#count;
  }

  get heldBytes(): number {
    return this.#places.byteLength;
  }

  has(hash: number): boolean {
    return this.#places[this.#placeOf(hash)] !== 0;
  }

  /** Returns whether it is new. */
  add(hash: number): boolean {
    let place = this.#placeOf(hash);
    if (this.#places[place] !== 0) return false;
    if (this.#count + 1 > MOST_TAKEN * this.#places.length) {
      this.#grow();
      place = this.#placeOf(hash);
    }
    this.#places[place] = hash;
    this.#count++;
    return true;
  }

  #placeOf(hash: number): number {
    const places = this.#places;
    const mask = places.length - 1;
    const mixed = Math.imul(hash ^ this.#seed, 0x9e3779b1);
    let place = (mixed ^ (mixed >>> 15)) & mask;
    while (places[place] !== 0 && places[place] !== hash) place = (place + 1) & mask;
    return place;
  }

  #grow(): void {
    const before = this.#places;
    this.#places = new Uint32Array(2 * before.length);
    for (const hash of before) if (hash !== 0) this.#places[this.#placeOf(hash)] = hash;
  }
}
