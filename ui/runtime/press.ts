/**
 * Keeps a press that is in progress while the controls of an island are replaced.
 *
 * A browser sends a click where a press begins and ends on one element. Where another element has come under the
 * pointer meanwhile it sends none, and this module does.
 *
 * Runs in the browser, with entries.ts. Knows no React.
 */

/** What takes a press, text or the focus. */
export const CONTROLS = 'a[href], button, input, label, select, summary, textarea';

/** What the space bar presses. */
const PRESSED_BY_SPACE =
  'button, summary, input:is([type=button], [type=checkbox], [type=radio], [type=reset], [type=submit])';

/** Returns the control in the place of `control`: `control` itself where it was not replaced. */
export type Successor = (control: Element) => Element;

interface Press {
  began: Element;
  /** Where and by which event it ended. */
  end?: { control: Element; event: Input };
  /** Where the browser sent a click then. */
  clicked?: Element | undefined;
}

type Input = PointerEvent | MouseEvent | KeyboardEvent;

/**
 * Follows presses on the controls of `island`.
 *
 * Returns the function to call once the controls are replaced. It clicks the control where a press has ended without a
 * click of the browser, or waits for the end of a press in progress.
 */
export function keepPress(island: Element): (successor: Successor) => void {
  const active = [...island.querySelectorAll(CONTROLS)].find((control) => control.matches(':active'));
  let press: Press | undefined = active && { began: active };
  let successor: Successor | undefined;

  const controlOf = ({ target }: Event) => {
    // The target may also be the document.
    const control = (target as Element).closest?.(CONTROLS);
    return control && island.contains(control) ? control : undefined;
  };
  const begin = (event: Input) => {
    const control = controlOf(event);
    if (!isPress(event, control)) return;
    // Where `pointerdown` had the control replaced, `mousedown` comes to what is around it.
    if (control || event.type !== 'mousedown') press = control && { began: control };
  };
  const cancel = () => {
    press = undefined;
  };
  const end = (event: Input) => {
    const control = controlOf(event);
    if (!isPress(event, control)) return;
    if (press && control) press.end ??= { control, event };
    // `mouseup` follows.
    if (event.type === 'pointerup') return;
    if (!press?.end) cancel();
    // The browser sends its own click before the next task.
    setTimeout(finish);
  };
  const onClick = (event: Event) => {
    if (event.isTrusted && press?.end) press.clicked = controlOf(event);
  };
  const finish = () => {
    if (!successor || (press && !press.end)) return;
    for (const [type, listener] of listeners) removeEventListener(type, listener as EventListener, true);
    if (press?.end) click(press, press.end, successor);
    press = undefined;
  };

  // At the window and in the first phase, since React hydrates, and so replaces, while it hears of a press.
  const listeners: [string, (event: Input) => void][] = [
    ['pointerdown', begin],
    ['mousedown', begin],
    ['keydown', begin],
    ['contextmenu', cancel],
    ['dragstart', cancel],
    ['pointerup', end],
    ['mouseup', end],
    ['keyup', end],
    ['click', onClick],
  ];
  for (const [type, listener] of listeners) addEventListener(type, listener as EventListener, true);

  return (carried) => {
    successor = carried;
    setTimeout(finish);
  };
}

/**
 * Whether it is the main button of a mouse, or the space bar where that presses. Pointers that are no mouse are left to
 * the mouse events that follow a tap: fingers scroll, too.
 */
const isPress = (event: Input, control: Element | undefined) =>
  'key' in event
    ? event.key === ' ' && control?.matches(PRESSED_BY_SPACE)
    : event.button === 0 && (!('pointerType' in event) || event.pointerType === 'mouse');

/** Clicks the control that was pressed, unless the press ended on another one or was clicked by the browser. */
function click(
  { began, clicked }: Press,
  { control: ended, event }: Required<Press>['end'],
  successor: Successor,
) {
  const control = successor(ended);
  if (successor(began) !== control || (clicked && successor(clicked) === control)) return;
  if (!(control instanceof HTMLElement) || control.matches(':disabled')) return;
  // A press focuses, too, and its beginning came to an element that is gone.
  control.focus({ preventScroll: true });
  // The keys that are held come along: they may ask for a new tab.
  control.dispatchEvent(new MouseEvent('click', event));
}
