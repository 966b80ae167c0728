/* A library with a static array, to be loaded while a program runs. */
char far_array[8 << 20];
