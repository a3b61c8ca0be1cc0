/** What the entries are about, and what to say of those that are shown. Pure. */
import type { Language } from '../../shared/language.ts';
import { fill } from '../../shared/words.ts';
import type { Props } from './props.ts';

export interface Topic {
  tag: string;
  /** How many entries have it. */
  count: number;
}

/** Every tag that occurs, the most frequent first, equals by their code points. */
export function topicsOf(entries: readonly (readonly string[])[]): Topic[] {
  const counts = new Map<string, number>();
  for (const tag of entries.flatMap((tags) => [...new Set(tags)]))
    counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts]
    .map(([tag, count]) => ({ tag, count }))
    .sort((a, b) => b.count - a.count || (a.tag < b.tag ? -1 : 1));
}

/** The address of the list with one topic only. */
export function topicHref(href: string, tag: string): string {
  return `${href}?tag=${encodeURIComponent(tag)}`;
}

/** What the live region says. `tag` is the one asked for, if any, `topic` what there is of it. */
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
