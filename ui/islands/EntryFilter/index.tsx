/**
 * Shows the entries of one topic: a link for each topic, and a line with the number of shown entries. Topics of a
 * single entry are in a disclosure, which is open if one of them is shown.
 *
 * The theme has the list, complete in the page; the island only hides items of it. The address has the choice, so
 * that a filtered list can be linked to and the browser's back button works.
 *
 * The island is hidden in the server's markup, since its links do nothing without scripts. If scripts run, the
 * theme shows it from the first paint on.
 */
import { type MouseEvent, useLayoutEffect, useSyncExternalStore } from 'react';
import { useLanguage } from '../../shared/language.ts';
import { fill } from '../../shared/words.ts';
import { chosenTag, go, onPlace } from './place.ts';
import type { Props } from './props.ts';
import { folded, statusText, type Topic, topicHref, topicsOf } from './topics.ts';

export default function EntryFilter({ href, list, entries, labels }: Props) {
  const language = useLanguage();
  const tag = useSyncExternalStore(onPlace, chosenTag, () => undefined);
  const topics = topicsOf(entries);
  const topic = topics.find((each) => each.tag === tag);
  const shown = topic?.tag;

  useLayoutEffect(() => {
    if (shown === undefined) return;
    const items = document.querySelectorAll<HTMLElement>(`#${CSS.escape(list)} > *`);
    for (const [place, item] of items.entries()) item.hidden = !entries[place]?.includes(shown);
    return () => {
      for (const item of items) item.hidden = false;
    };
  }, [entries, list, shown]);

  const link = (label: string, href: string, count: number, current: boolean) => (
    <li key={href}>
      <a href={href} aria-current={current ? 'true' : undefined} onClick={follow}>
        {label} <span className="entry-filter-count">{language.number(count)}</span>
      </a>
    </li>
  );
  const topicLink = ({ tag, count }: Topic) => link(tag, topicHref(href, tag), count, tag === shown);
  const { frequent, single } = folded(topics);
  return (
    <div className="entry-filter" hidden={tag === undefined}>
      <nav aria-label={labels.topics}>
        <ul className="entry-filter-topics">
          {link(labels.all, href, entries.length, !topic)}
          {frequent.map(topicLink)}
        </ul>
        {single.length > 0 && (
          <details className="entry-filter-rest" open={single.some((each) => each.tag === shown)}>
            <summary>{fill(labels.rest, { count: single.length }, language)}</summary>
            <ul className="entry-filter-topics">{single.map(topicLink)}</ul>
          </details>
        )}
      </nav>
      <p className="entry-filter-status" role="status">
        {statusText(labels, language, entries.length, tag, topic)}
      </p>
    </div>
  );
}

/** Changes the topic without loading the page, unless the visitor requests another tab or window. */
function follow(event: MouseEvent<HTMLAnchorElement>) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(event.currentTarget.href);
}
