/** What we use of the npm package `tdigest`, which brings no types. */
declare module 'tdigest' {
  class TDigest {
    push(value: number): void;
    percentile(share: number): number;
  }
  const tdigest: { TDigest: typeof TDigest };
  export default tdigest;
}
