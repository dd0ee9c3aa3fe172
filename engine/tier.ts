/**
 * Project tiers and how long each keeps its edge logs. The tier of an entry is the one that it names, else
 * its record's header, else the settings' (ingest/decode/element.ts). Source: SPEC, `logs.all`, rule 1.
 */

import { US_PER_DAY } from './time.js';

/** The retention of a row: projects of one class share its runs. */
export const TIER_CLASSES = ['1d', '7d', '90d'] as const;
export type TierClass = (typeof TIER_CLASSES)[number];

export const RETENTION_US: Readonly<Record<TierClass, number>> = {
  '1d': US_PER_DAY,
  '7d': 7 * US_PER_DAY,
  '90d': 90 * US_PER_DAY,
};

export const LONGEST_RETENTION_US = RETENTION_US['90d'];

/** As the wire has them. */
export const TIER_NAMES = ['FREE', 'PRO', 'PAYG', 'ENTERPRISE'] as const;
export type TierName = (typeof TIER_NAMES)[number];

/** Unknown, empty and differently spelt tiers (`free`) are FREE, as the contract says. */
export function tierClassOf(tier: string): TierClass {
  switch (tier) {
    case 'PRO':
      return '7d';
    case 'PAYG':
    case 'ENTERPRISE':
      return '90d';
    default:
      return '1d';
  }
}
