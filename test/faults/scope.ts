// How much of all there is a run takes, as the environment says.

/**
 * FAULTS=all takes what fits into an hour, FAULTS=ci (the default) what fits into minutes; FAULTS_SEED says which of it.
 * FAULTS_STRIDE=n takes every n-th point of the sweeps, so 1 all there are, and FAULTS_CASE=name one case.
 */
const { FAULTS = "ci", FAULTS_SEED = "1", FAULTS_CASE, FAULTS_STRIDE } = process.env;

export const TAKES_ALL = FAULTS === "all";
export const SEED = Number(FAULTS_SEED);
export const ONLY_CASE = FAULTS_CASE;
export const STRIDE = FAULTS_STRIDE === undefined ? undefined : Number(FAULTS_STRIDE);
