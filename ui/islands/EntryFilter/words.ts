/** The filter's own words; the prop `labels` replaces them. `{count}`, `{total}` and `{tag}` are filled in. */
export const defaults = {
  topics: 'Topics',
  all: 'All',
  whole: 'All {total} shown',
  part: '{count} of {total} shown: {tag}',
  unknown: 'Nothing has that topic. All {total} are shown',
};

export type Words = typeof defaults;
