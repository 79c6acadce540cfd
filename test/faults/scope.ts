// How many of all cases a run takes, as set in the environment.

/**
 * FAULTS=all takes as many cases as fit into an hour, FAULTS=ci (the default) as many as fit into minutes. FAULTS_SEED selects which.
 * FAULTS_STRIDE=n takes every n-th point of the sweeps, so 1 takes all. FAULTS_CASE=name takes one case.
 */
const { FAULTS = "ci", FAULTS_SEED = "1", FAULTS_CASE, FAULTS_STRIDE } = process.env;

export const TAKES_ALL = FAULTS === "all";
export const SEED = Number(FAULTS_SEED);
export const ONLY_CASE = FAULTS_CASE;
export const STRIDE = FAULTS_STRIDE === undefined ? undefined : Number(FAULTS_STRIDE);
