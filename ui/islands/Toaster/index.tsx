/**
 * Shows the toasts that islands send over the bus. Rendered in the browser only.
 *
 * Most visitors never see one, so what draws them is fetched when a form gets the focus, or at the latest with the
 * first toast. It is the largest module but React: compiled late and beside the first drawing of a page, it has made
 * Chromium (153 to 156) stop drawing for good.
 */
import { type FunctionComponent, useEffect, useState, useSyncExternalStore } from 'react';
import { current, subscribe } from '../../shared/toast.ts';
import type { Props } from './props.ts';

const fetchToasts = () => import('./Toasts.tsx');
const hasToasts = () => current().length > 0;

export default function Toaster(props: Props) {
  const needed = useSyncExternalStore(subscribe, hasToasts, hasToasts);
  const [fetched, setFetched] = useState<{ Toasts?: FunctionComponent<Props>; failure?: unknown }>({});

  useEffect(() => {
    const onFocusIn = ({ target }: FocusEvent) => {
      // What fails here is told with the first toast.
      if (target instanceof Element && target.closest('form')) fetchToasts().catch(() => {});
    };
    document.addEventListener('focusin', onFocusIn);
    return () => document.removeEventListener('focusin', onFocusIn);
  }, []);

  useEffect(() => {
    if (!needed) return;
    fetchToasts().then(
      ({ default: Toasts }) => setFetched({ Toasts }),
      (failure) => setFetched({ failure }),
    );
  }, [needed]);

  const { Toasts, failure } = fetched;
  if (failure) throw failure;
  return Toasts && <Toasts {...props} />;
}
