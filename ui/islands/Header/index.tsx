/**
 * The site header: logo, navigation, and below 768 px a button that opens the navigation as a panel.
 *
 * The links are always in the markup. On small screens the theme hides them only if scripts run (`@media
 * (scripting: enabled)`). That is known from the first paint on, so the hydration moves nothing. The loader marks a
 * scrolled page: see runtime/scrolled.ts.
 */
import { useEffect, useId, useRef, useState } from 'react';
import type { Props } from './props.ts';

export default function Header({ home, name, mark, links, labels }: Props) {
  const [open, setOpen] = useState(false);
  const header = useRef<HTMLElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const menu = useId();

  useEffect(() => {
    if (!open) return;
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return;
      setOpen(false);
      button.current?.focus();
    };
    const closeOutside = (event: Event) => {
      if (event.target instanceof Node && !header.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener('keydown', onKeyDown);
    document.addEventListener('click', closeOutside);
    // Otherwise the tab key would move the focus behind the panel.
    document.addEventListener('focusin', closeOutside);
    return () => {
      document.removeEventListener('keydown', onKeyDown);
      document.removeEventListener('click', closeOutside);
      document.removeEventListener('focusin', closeOutside);
    };
  }, [open]);

  return (
    <header ref={header} className="site-header" data-menu={open ? 'open' : 'closed'}>
      <a className="header-logo" href={home}>
        {mark && (
          <svg className="header-mark" aria-hidden="true" focusable="false">
            <use href={mark} />
          </svg>
        )}
        <span className="header-name">{name}</span>
      </a>
      <button
        ref={button}
        className="header-menu-button"
        type="button"
        aria-expanded={open}
        aria-controls={menu}
        onClick={() => setOpen(!open)}
      >
        {open ? labels.close : labels.menu}
      </button>
      <nav className="header-nav" id={menu} aria-label={labels.menu}>
        <ul className="header-links">
          {links.map(({ label, href, current }) => (
            <li key={`${label} ${href}`}>
              <a
                className="header-link"
                href={href}
                aria-current={current ? 'page' : undefined}
                onClick={() => setOpen(false)}
              >
                {label}
              </a>
            </li>
          ))}
        </ul>
      </nav>
    </header>
  );
}
