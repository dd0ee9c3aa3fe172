/** What an operator can acknowledge: gaps in the log, and partitions that hold. */

import type { Logger } from 'pino';
import type { Gaps } from '../../ingest/gaps.js';
import type { AlarmPorts } from '../http/ports.js';
import type { Committer } from './committer.js';
import type { Logs } from './log-intake.js';

export function createAlarms(
  gaps: Gaps,
  logs: Pick<Logs, 'status' | 'acknowledgeHolds'>,
  committer: Pick<Committer, 'commit'>,
  logger: Logger,
): AlarmPorts {
  return {
    gaps: {
      open: () => gaps.open,
      acknowledge: async () => {
        const acknowledged = gaps.open;
        gaps.acknowledge();
        await committer.commit();
        logger.info({ acknowledged }, 'gaps: acknowledged by an operator');
        return acknowledged;
      },
    },
    holds: {
      open: () => logs.status().held,
      acknowledge: async () => {
        const { held } = logs.status();
        logs.acknowledgeHolds(held);
        logger.info({ acknowledged: held }, 'holds: acknowledged by an operator');
        return held;
      },
    },
  };
}
