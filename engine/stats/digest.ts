/**
 * The values of one bucket that holds too many to keep: a merging t-digest (Dunning and Ertl, "Computing
 * extremely accurate quantiles using t-digests") that answers high percentiles with a small error in rank.
 *
 *     centroids   min | mean, weight | mean, weight | … | max     in rising order, finer towards the maximum
 *     buffer      values not merged yet, in the order they came
 *
 * Of the usual scale functions we take the logarithmic one, and only its upper half: just the 95th and 99th
 * percentiles are ever asked for, so the centroids go there, at a third of k1's error for the same memory. It
 * comes down to one rule: a centroid may stand for DIGEST_CENTROID_SHARE of the weight from its start upwards
 * (plus DIGEST_TAIL_SHARE of all weight). The lowest and the highest value are centroids of their own and
 * never merge.
 *
 * The buffer is merged when it is full and at no other time, so that state is a function of the values and
 * their order alone. A query reads centroids and buffer as they are.
 */

import { assert } from '../assert.js';
import type { ByteReader, ByteWriter } from '../bytes.js';
import { DIGEST_BUFFER_LENGTH, DIGEST_CENTROID_SHARE, DIGEST_TAIL_SHARE } from '../limits.js';
import { SegmentError } from '../segments.js';
import type { UpperTail } from './upper-tail.js';

/**
 * Two neighbours together weigh more than the first alone was allowed, so each pair takes its share of the
 * weight that is left: the number of pairs is the logarithm below. The extremes and the pair cut short at the
 * end come on top.
 */
export const CENTROID_LIMIT =
  2 *
    Math.ceil(Math.log((1 + DIGEST_TAIL_SHARE) / DIGEST_TAIL_SHARE) / -Math.log(1 - DIGEST_CENTROID_SHARE)) +
  4;

/** What a digest holds in memory; also the most that it takes when written. */
export const DIGEST_BYTES = 8 * (2 * CENTROID_LIMIT + DIGEST_BUFFER_LENGTH) + 2 * 4;

/** The result of a merge until it is copied back: one for all digests, as none is merged while another is. */
const mergedMeans = new Float64Array(CENTROID_LIMIT);
const mergedWeights = new Float64Array(CENTROID_LIMIT);

export class Digest {
  readonly #means = new Float64Array(CENTROID_LIMIT);
  readonly #weights = new Float64Array(CENTROID_LIMIT);
  #centroidCount = 0;
  /** The sum of the weights. */
  #mergedCount = 0;
  readonly #buffer = new Float64Array(DIGEST_BUFFER_LENGTH);
  #bufferLength = 0;

  /** The number of values taken. */
  get count(): number {
    return this.#mergedCount + this.#bufferLength;
  }

  get centroidCount(): number {
    return this.#centroidCount;
  }

  /** Takes a finite value. Allocates nothing. */
  add(value: number): void {
    if (this.#bufferLength === DIGEST_BUFFER_LENGTH) this.#mergeBuffer();
    this.#buffer[this.#bufferLength] = value;
    this.#bufferLength += 1;
  }

  /**
   * A value from which up this digest holds all that can matter to the `rank` highest values, here or
   * together with other digests: the centroid after the one that completes them. −∞ when it takes more than
   * the centroids.
   */
  tailFloor(rank: number): number {
    const weights = this.#weights;
    let weight = 0;
    for (let i = this.#centroidCount - 1; i > 0; i--) {
      weight += weights[i];
      if (weight >= rank) return this.#means[i - 1];
    }
    return Number.NEGATIVE_INFINITY;
  }

  /** Adds the centroids and buffered values from floorValue up. */
  collect(floorValue: number, tail: UpperTail): void {
    const means = this.#means;
    const weights = this.#weights;
    for (let i = this.#centroidCount - 1; i >= 0 && means[i] >= floorValue; i--)
      tail.add(means[i], weights[i]);
    const buffer = this.#buffer;
    const length = this.#bufferLength;
    for (let i = 0; i < length; i++) if (buffer[i] >= floorValue) tail.add(buffer[i], 1);
  }

  write(out: ByteWriter): void {
    out.u32(this.#centroidCount);
    for (let i = 0; i < this.#centroidCount; i++) {
      out.f64(this.#means[i]);
      out.f64(this.#weights[i]);
    }
    out.u32(this.#bufferLength);
    for (let i = 0; i < this.#bufferLength; i++) out.f64(this.#buffer[i]);
  }

  /** Throws a SegmentError for bytes that no digest writes. */
  static read(segment: ByteReader): Digest {
    const digest = new Digest();
    digest.#centroidCount = segment.u32();
    if (digest.#centroidCount > CENTROID_LIMIT) throw new SegmentError('a digest has too many centroids');
    for (let i = 0; i < digest.#centroidCount; i++) {
      const mean = segment.f64();
      const weight = segment.f64();
      if (!Number.isFinite(mean) || !Number.isSafeInteger(weight) || weight <= 0)
        throw new SegmentError('a digest has a centroid without a mean or a weight');
      digest.#means[i] = mean;
      digest.#weights[i] = weight;
      digest.#mergedCount += weight;
    }
    digest.#bufferLength = segment.u32();
    if (digest.#bufferLength > DIGEST_BUFFER_LENGTH) throw new SegmentError('a digest has too many values');
    for (let i = 0; i < digest.#bufferLength; i++) {
      digest.#buffer[i] = segment.f64();
      if (!Number.isFinite(digest.#buffer[i])) throw new SegmentError('a value of a digest is not a number');
    }
    return digest;
  }

  #mergeBuffer(): void {
    this.#buffer.sort();
    const count = mergeSorted(
      this.#means,
      this.#weights,
      this.#centroidCount,
      this.#mergedCount,
      this.#buffer,
    );
    for (let i = 0; i < count; i++) {
      this.#means[i] = mergedMeans[i];
      this.#weights[i] = mergedWeights[i];
    }
    this.#centroidCount = count;
    this.#mergedCount += DIGEST_BUFFER_LENGTH;
    this.#bufferLength = 0;
  }
}

/**
 * Merges rising centroids and rising values of weight 1 into the scratch arrays; returns the number of
 * centroids.
 */
function mergeSorted(
  means: Float64Array,
  weights: Float64Array,
  centroidCount: number,
  centroidWeight: number,
  values: Float64Array,
): number {
  const itemCount = centroidCount + values.length;
  const tailWeight = DIGEST_TAIL_SHARE * (centroidWeight + values.length);
  let weightAbove = centroidWeight + values.length;
  let nextCentroid = 0;
  let nextValue = 0;
  let count = 0;
  let mean = 0;
  let weight = 0;
  let weightLimit = 0;
  for (let item = 0; item < itemCount; item++) {
    let itemMean: number;
    let itemWeight = 1;
    if (
      nextCentroid < centroidCount &&
      (nextValue === values.length || means[nextCentroid] <= values[nextValue])
    ) {
      itemMean = means[nextCentroid];
      itemWeight = weights[nextCentroid++];
    } else {
      itemMean = values[nextValue++];
    }
    // Items 0 and itemCount − 1 are the extremes.
    if (item > 1 && item < itemCount - 1 && weight + itemWeight <= weightLimit) {
      weight += itemWeight;
      mean = weightedMean(mean, itemMean, itemWeight / weight);
      continue;
    }
    if (item > 0) {
      mergedMeans[count] = mean;
      mergedWeights[count++] = weight;
      weightAbove -= weight;
    }
    mean = itemMean;
    weight = itemWeight;
    weightLimit = DIGEST_CENTROID_SHARE * (weightAbove + tailWeight);
  }
  mergedMeans[count] = mean;
  mergedWeights[count++] = weight;
  assert(count <= CENTROID_LIMIT, 'a digest outgrew its proven number of centroids');
  return count;
}

/** Between low and high ≥ low, never outside by rounding and never infinite, however far apart they are. */
function weightedMean(low: number, high: number, highShare: number): number {
  if (low === high) return low;
  const mean = low * (1 - highShare) + high * highShare;
  return mean < low ? low : mean > high ? high : mean;
}
