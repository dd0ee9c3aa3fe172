/** Every cap of event counts, each with its reason: what too big and too small would mean. */

/**
 * What a segment costs beside its content, when a slot weighs its changes against writing it whole. Bigger: a
 * slot of few projects is written whole with each commit; smaller: a start reads many small segments.
 */
export const EVENT_SEGMENT_COST_BYTES = 64;
