/**
 * The ISO 8601 timestamps that the query API takes (engine/iso-timestamp.ts), as a regular expression for
 * those who read the API's description. What it can't say is left to the text beside it: leap seconds.
 */

const MONTH_DAY =
  '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))';
const LEAP_YEAR = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)';
const CLOCK = '(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?';
const MIDNIGHT = '24:00(?::00(?:[.,]0{1,9})?)?';
const OFFSET = '(?:[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?';

/** Empty, too: then there is no bound. */
export const ISO_TIMESTAMP_PATTERN = `^(?:(?:[0-9]{4}-${MONTH_DAY}|${LEAP_YEAR}-02-29)(?:[Tt ](?:${CLOCK}|${MIDNIGHT})${OFFSET})?)?$`;
