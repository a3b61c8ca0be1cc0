/** The form's own words; the prop `labels` replaces them. */
export const defaults = {
  requiredMark: 'required',
  missing: 'Please fill this in.',
  email: 'Please enter an email address, such as name@example.com.',
  openedTitle: 'Your mail program should be open',
  openedText:
    'The message is in it, ready for you to send. If no program opened, copy the message and send it yourself to this address:',
  longTitle: 'The message is too long to hand over',
  longText: 'Nothing is lost: copy the message, then paste it into an email to this address:',
  message: 'Your message',
  copy: 'Copy the message',
  copied: 'The message is copied.',
  notCopied: 'The message is selected: copy it with your keyboard or menu.',
  again: 'Open the mail program again',
  empty: 'Open an empty email',
};

export type Words = typeof defaults;
