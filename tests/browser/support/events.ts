/** Observes how a page handles an event, before the browser's default action. */
import type { Page } from '@playwright/test';

/**
 * Watches for the next event of a type, and prevents its default action, which some browsers cannot do. Await this
 * function before causing the event; otherwise a key press may come before the listener. The returned function says,
 * after the event, whether the page had prevented the default action.
 */
export async function watchNext(page: Page, type: 'click' | 'submit'): Promise<() => Promise<boolean>> {
  const next = await page.evaluateHandle((type) => {
    const prevented = new Promise<boolean>((tell) => {
      const watch = (event: Event) => {
        tell(event.defaultPrevented);
        event.preventDefault();
      };
      addEventListener(type, watch, { once: true });
    });
    // In an object, since a promise would be awaited here.
    return { prevented };
  }, type);
  return () => next.evaluate(({ prevented }) => prevented);
}
