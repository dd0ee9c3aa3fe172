/**
 * Numbers as Kafka's protocol writes them where they are usually small: seven bits a byte, the lowest first.
 */

export function unsignedVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest & 127) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** With a sign, which is the lowest bit. */
export function varint(value: number): Buffer {
  return unsignedVarint(value < 0 ? -2 * value - 1 : 2 * value);
}
