/** The topics of a list of entries, and the status of what is shown. Pure. */
import type { Language } from '../../shared/language.ts';
import { fill } from '../../shared/words.ts';
import type { Props } from './props.ts';

export interface Topic {
  tag: string;
  /** Number of entries with the topic. */
  count: number;
}

/** Returns every tag with its count, the most frequent first, equal counts by code points. */
export function topicsOf(entries: readonly (readonly string[])[]): Topic[] {
  const counts = new Map<string, number>();
  for (const tag of entries.flatMap((tags) => [...new Set(tags)]))
    counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts]
    .map(([tag, count]) => ({ tag, count }))
    .sort((a, b) => b.count - a.count || (a.tag < b.tag ? -1 : 1));
}

/** Splits topics into those of several entries and those of one. Without a topic of several entries, nothing is split. */
export function folded(topics: readonly Topic[]): { frequent: Topic[]; single: Topic[] } {
  const frequent = topics.filter(({ count }) => count > 1);
  const single = topics.filter(({ count }) => count === 1);
  return frequent.length > 0 ? { frequent, single } : { frequent: single, single: [] };
}

/** Returns the address of the list with one topic. */
export function topicHref(href: string, tag: string): string {
  return `${href}?tag=${encodeURIComponent(tag)}`;
}

/** Returns the text of the live region. `tag` is the requested topic, if any; `topic` is the topic that was found. */
export function statusText(
  labels: Props['labels'],
  language: Language,
  total: number,
  tag: string | null | undefined,
  topic: Topic | undefined,
): string {
  if (topic) return fill(labels.part, { ...topic, total }, language);
  return fill(tag ? labels.unknown : labels.whole, { count: total, total }, language);
}
