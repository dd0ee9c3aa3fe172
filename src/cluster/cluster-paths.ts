/** How members find each other's listener. */

export const QUESTION_PATH = '/cluster/1/question';
export const QUESTIONS_PATH = '/cluster/1/questions';
export const HOLDINGS_PATH = '/cluster/1/holdings';
export const NAMES_PATH = '/cluster/1/names';
export const CLUSTER_KEY_HEADER = 'x-logring-cluster-key';
export const COPY_PATH = '/cluster/1/copy';
export const PIECE_PATH = '/cluster/1/copy/piece';
export const RELEASE_PATH = '/cluster/1/copy/release';
