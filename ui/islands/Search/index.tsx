/**
 * The search of a site: a field, and below it links to matching places.
 *
 * The arrow keys move through the links, Enter follows a link, and Escape returns to the field. The index is
 * fetched when a visitor uses the field. Without scripts the theme hides the field, and visitors use the list of
 * pages.
 */
import { type FocusEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { find, type Index } from './find.ts';
import type { Props } from './props.ts';

export default function Search({ index, labels }: Props) {
  const id = useId();
  const frame = useRef<HTMLFormElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const [known, setKnown] = useState<Index | 'failed'>();
  const [typed, setTyped] = useState('');
  const [open, setOpen] = useState(false);

  useEffect(() => {
    // Text that was typed before the island was mounted.
    if (field.current?.value) {
      setTyped(field.current.value);
      setOpen(true);
    }
    fetch(index)
      .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText))))
      .then(setKnown)
      .catch(() => setKnown('failed'));
  }, [index]);

  const asked = open && typed.trim() !== '';
  const places = asked && known && known !== 'failed' ? find(known, typed) : [];
  const status = () => {
    if (!asked || !known) return '';
    if (known === 'failed') return labels.failed;
    return places.length > 0 ? labels.found.replace('{count}', `${places.length}`) : labels.nothing;
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && asked) {
      event.preventDefault();
      // The focus opens the panel, so the field is focused before the panel is closed.
      field.current?.focus();
      setOpen(false);
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || !asked) return;
    event.preventDefault();
    const stops = [field.current, ...(frame.current?.querySelectorAll('a') ?? [])];
    const at = stops.indexOf(document.activeElement as HTMLInputElement | HTMLAnchorElement);
    stops[(at + step + stops.length) % stops.length]?.focus();
  };
  const onBlur = ({ relatedTarget }: FocusEvent) => {
    if (!frame.current?.contains(relatedTarget)) setOpen(false);
  };

  return (
    <search className="site-search">
      <form
        ref={frame}
        onKeyDown={onKeyDown}
        onBlur={onBlur}
        onSubmit={(event) => {
          event.preventDefault();
          frame.current?.querySelector('a')?.click();
        }}
      >
        <input
          ref={field}
          className="search-field"
          type="search"
          aria-label={labels.label}
          aria-describedby={id}
          placeholder={labels.label}
          autoComplete="off"
          spellCheck={false}
          onChange={({ target }) => {
            setTyped(target.value);
            setOpen(true);
          }}
          onFocus={() => setOpen(true)}
        />
        <div className="search-panel" hidden={!asked || !known}>
          <p className="search-status" id={id} role="status">
            {status()}
          </p>
          <ul className="search-places">
            {places.map(({ href, title, heading }) => (
              <li key={`${href} ${heading}`}>
                <a href={href} onClick={() => setOpen(false)}>
                  {heading || title}
                  {heading && <span className="search-page">{title}</span>}
                </a>
              </li>
            ))}
          </ul>
        </div>
      </form>
    </search>
  );
}
