/** Words of an island, with what content gives in place of the defaults. */
export function chooseWords<D extends Record<string, string>>(
  defaults: D,
  given: { [K in keyof D]?: string | null } | null | undefined,
): D {
  const chosen = Object.entries(given ?? {}).filter(([, value]) => value);
  return { ...defaults, ...Object.fromEntries(chosen) };
}
