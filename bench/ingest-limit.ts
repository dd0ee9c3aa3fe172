/** The limit of ingest, beside which its figures stand. */

import type { ConsumeOrder, ConsumeReport } from './bare-consumer.js';
import { reportOf, startChild } from './child-process.js';
import { allowAllCores } from './cores.js';

/** Notes how much Kafka's client reads when nothing is done with it, by the clock and by processor time. */
export async function noteBareConsumer(
  name: string,
  order: ConsumeOrder,
  note: (name: string, value: number, unit: string) => void,
): Promise<void> {
  const consumer = startChild('./bare-consumer.js');
  allowAllCores(consumer.pid!);
  consumer.send(order);
  const { count, elapsedUs, processorUs } = await reportOf<ConsumeReport>(consumer);
  note(`a bare consumer of ${name}`, count / (elapsedUs / 1e6), 'entries/s');
  note(`a bare consumer of ${name}, by processor time`, count / (processorUs / 1e6), 'entries/s a core');
}
