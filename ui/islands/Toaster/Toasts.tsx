/**
 * The toasts, one at a time. The module is fetched when a page is about to show a toast.
 *
 * Radix implements the announcements, the F8 key, the pause while a toast is hovered, focused or in the background,
 * and swiping.
 */
import * as Radix from '@radix-ui/react-toast';
import { useSyncExternalStore } from 'react';
import { current, dismiss, subscribe } from '../../shared/toast.ts';
import type { Toast, ToastAction } from '../../shared/toast-state.ts';
import type { Props } from './props.ts';

/** Milliseconds until a toast closes. */
const DURATION = 5000;
/** Pixels to the edge of the page after which a swipe dismisses the toast. */
const SWIPE_THRESHOLD = 50;
const HOTKEY = ['F8'];

export default function Toasts({ labels }: Props) {
  const toasts = useSyncExternalStore(subscribe, current, current);
  return (
    <Radix.Provider
      label={labels.toast}
      duration={DURATION}
      swipeDirection={document.dir === 'rtl' ? 'left' : 'right'}
      swipeThreshold={SWIPE_THRESHOLD}
    >
      {toasts.map((toast) => (
        <Item key={toast.id} toast={toast} close={labels.close} />
      ))}
      <Radix.Viewport className="toaster" hotkey={HOTKEY} label={labels.region} />
    </Radix.Provider>
  );
}

function Item({ toast, close }: { toast: Toast; close: string }) {
  return (
    <Radix.Root
      className="toast"
      data-variant={toast.variant ?? 'default'}
      duration={toast.duration}
      open={toast.open}
      onOpenChange={(open) => {
        if (!open) dismiss(toast.id);
      }}
    >
      <div className="toast-text">
        <Radix.Title className="toast-title">{toast.title}</Radix.Title>
        {toast.description && (
          <Radix.Description className="toast-description">{toast.description}</Radix.Description>
        )}
      </div>
      {toast.action && <Action action={toast.action} />}
      <Radix.Close className="toast-close">{close}</Radix.Close>
    </Radix.Root>
  );
}

function Action({ action: { label, altText, href, onSelect } }: { action: ToastAction }) {
  if (!href) {
    return (
      <Radix.Action className="toast-action" altText={altText} onClick={onSelect}>
        {label}
      </Radix.Action>
    );
  }
  // `type` removes the button type that Radix would pass to the link.
  return (
    <Radix.Action className="toast-action" altText={altText} onClick={onSelect} asChild>
      <a href={href} type={undefined}>
        {label}
      </a>
    </Radix.Action>
  );
}
