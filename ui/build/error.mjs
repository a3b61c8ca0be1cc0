/** A failure that is explained in one sentence; everything else that is thrown is a bug in the build itself. */
export class BuildError extends Error {}
