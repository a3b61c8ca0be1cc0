/** A failure that one sentence explains to the user. All other exceptions are bugs of the build. */
export class BuildError extends Error {}
