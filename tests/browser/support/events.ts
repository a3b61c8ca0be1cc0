/** Watching what a page does with an event, before the browser does its own part. */
import type { Page } from '@playwright/test';

/**
 * Watches for the next event of a type, and calls it off itself: what a browser does with it is the browser's
 * business, and some cannot. To be awaited before the event is caused, since a key that is pressed at once overtakes a
 * listener that is still being added. What comes back tells, once the event was, whether the page had called it off.
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
    // Inside an object, for a promise would be waited for here.
    return { prevented };
  }, type);
  return () => next.evaluate(({ prevented }) => prevented);
}
